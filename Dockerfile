# docker build -t ringsim . && docker run --rm -v "$PWD:/work" ringsim run dgx-h100
FROM debian:bookworm-slim AS build
COPY . /ringsim
WORKDIR /ringsim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git \
 && tools/package.sh deb

FROM debian:bookworm-slim
COPY --from=build /ringsim/dist/ringsim_*.deb /tmp/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /tmp/ringsim_*.deb \
 && rm -rf /var/lib/apt/lists/* /tmp/ringsim_*.deb
WORKDIR /work
ENTRYPOINT ["ringsim"]
