#!/usr/bin/env bash
# Every experiment of the replay on GPUs, on a machine with one: probe first, then predicted next to measured, as CSV.
#   tools/gpu-all.sh [FOLDER]           builds; results into FOLDER (default: validate/measured/replay)
#   RINGSIM=FILE tools/gpu-all.sh       with a command that is built already
#   tools/gpu-all.sh --dry-run FOLDER   small sizes, few repeats; with RINGSIM=build/tools/ringsim_on_fake_gpu, no GPU
# The last lines say how far predictions were off; a page with a table and a picture of it is written into docs/results/ (in a
# dry run into FOLDER). nccl.csv: NCCL, on one GPU and by two processes on it, which it does not support: what comes of
# each, be it a failure's words.
# Ends with the exit code of the first that fails, NCCL's aside: 1 a wrong number, 5 no GPU. Five minutes on an H100.
set -euo pipefail
cd "$(dirname "$0")/.."

dry=false
if [[ ${1:-} == --dry-run ]]; then
  dry=true
  shift
fi
out=${1:-validate/measured/replay}
if [[ -z ${RINGSIM:-} ]]; then
  tools/install-deps.sh
  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DRINGSIM_CUDA=ON
  cmake --build build -j "$(nproc)" --target ringsim ringsim_tests
  RINGSIM=build/tools/ringsim
fi
mkdir -p "$out"

if $dry; then
  most="1 MiB" repeats=1 warmups=0 probe_repeats=1
  host_ranks="1 2" memory_ranks="4" blocks="1 8"
  host_bytes='["4 KiB", "64 KiB"]' memory_bytes='["4 KiB", "64 KiB"]' kernel_bytes='"1 MiB"'
  nccl_bytes='["4 KiB", "64 KiB"]' nccl_timeout=2s
else
  most="256 MiB" repeats=20 warmups=3 probe_repeats=20
  host_ranks="1 2 3 4 5 6 7 8" memory_ranks="4 8 16" blocks="1 2 4 8 16 32 64"
  host_bytes='{"from": "1 MiB", "to": "256 MiB", "factor": 4}'
  memory_bytes='{"from": "4 KiB", "to": "1 GiB", "factor": 4}' kernel_bytes='["16 MiB", "64 MiB"]'
  nccl_bytes='["1 MiB", "64 MiB", "256 MiB"]' nccl_timeout=20s
fi

# provenance: where the numbers come from, of the run that part.err is of.
provenance() {
  sed -n 's/^ringsim: measured/# measured/p' "$out/part.err"
  echo "# $(date -u +%F), $("$RINGSIM" --version), tools/gpu-all.sh$($dry && echo ' --dry-run' || true)"
  nvidia-smi --query-gpu=name,driver_version,vbios_version,pcie.link.gen.current,pcie.link.width.current,clocks.max.mem,clocks.max.sm \
    --format=csv,noheader 2> /dev/null | sed 's/^/# nvidia-smi: /' || true
}

# replay FILE ARGUMENT...: appends the points to FILE, whose first lines say where they come from.
replay() {
  local file=$out/$1
  shift
  "$RINGSIM" replay "$out/gpu.json" --backend cuda --samples "$out/probe.csv" --repeats $repeats --warmups $warmups --format csv -o "$out/part.csv" \
    "$@" 2> "$out/part.err" || { local code=$?; cat "$out/part.err" >&2; exit $code; }
  if [[ ! -e $file ]]; then
    provenance > "$file"
    head -1 "$out/part.csv" | sed "s/\$/${copy_blocks:+,copy_blocks}/" >> "$file"
  fi
  tail -n +2 "$out/part.csv" | sed "s/\$/${copy_blocks:+,$copy_blocks}/" >> "$file"
  rm "$out/part.csv" "$out/part.err"
}

# nccl BY RANKS START... -- ARGUMENT...: a ring through NCCL, the command started by START. Its points are appended to
# nccl.csv after what it printed; if it fails, that is all.
nccl() {
  local by=$1 ranks=$2 file=$out/nccl.csv code=0 start=()
  shift 2
  while [[ $1 != -- ]]; do start+=("$1") && shift; done
  shift
  timeout -k 5 60 "${start[@]}" "$RINGSIM" replay "$out/gpu.json" --backend nccl --timeout $nccl_timeout --repeats $repeats \
    --warmups $warmups --format csv -o "$out/part.csv" --set "collective.ranks=$(first_ranks "$ranks")" \
    --set collective.algorithm=ring --set "collective.bytes=$nccl_bytes" "$@" > "$out/part.err" 2>&1 || code=$?
  [[ -e $file ]] || provenance > "$file"
  echo "# $by: exit code $code$([[ $code != 124 ]] || echo ', not done within 60 s')" | tee -a "$file" | sed 's/^# /nccl.csv: /'
  sed 's/^/# /' "$out/part.err" >> "$file"
  if [[ -e $out/part.csv ]]; then
    grep -q '^[^#]' "$file" || head -1 "$out/part.csv" | sed 's/$/,by/' >> "$file"
    tail -n +2 "$out/part.csv" | sed "s/\$/,$by/" >> "$file"
  fi
  rm -f "$out/part.csv" "$out/part.err"
}

# first_ranks N: ["gpu0", ..., "gpuN-1"]
first_ranks() { seq 0 $(($1 - 1)) | sed 's/.*/"gpu&"/' | paste -sd, | sed 's/.*/[&]/'; }

echo "probe" >&2
rm -f "$out"/{gpu.json,probe.csv,host.csv,memory-graph.csv,memory-streams.csv,kernels.csv,nccl.csv}
"$RINGSIM" probe --ranks 16 --most "$most" --repeats $probe_repeats -o "$out/gpu.json" --samples "$out/probe.csv"

echo "parameter servers in host memory, whole and in 8 pieces" >&2
for ranks in $host_ranks; do
  replay host.csv --set "collective.ranks=$(first_ranks "$ranks")" --set collective.servers_on=cpu \
    --set 'collective.algorithm={"name": "parameter_server", "servers": 1}' --set transport.channels=[1,8] \
    --set "collective.bytes=$host_bytes"
done

echo "ring, halving-doubling and parameter server in the GPU's memory, as a graph and call by call" >&2
for ranks in $memory_ranks; do
  for how in graph streams; do
    flags=()
    [[ $how == streams ]] && flags=(--streams)
    replay "memory-$how.csv" --set "collective.ranks=$(first_ranks "$ranks")" "${flags[@]}" \
      --set 'collective.algorithm=["ring", "halving_doubling", "parameter_server"]' --set "collective.bytes=$memory_bytes"
  done
done

# A kernel of few blocks copies at a rate of its own, which the probe knows: a link that each rank has for itself.
# Links 1, 3, 5... of the probe's scenario lead from a rank into the memory.
echo "copy kernels of few blocks as links, from those that leave the memory idle to those that share it" >&2
for n in $blocks; do
  rate=$(awk -F, -v n="$n" '$1 == "copy_kernel" && $4 == n { rate = $9 } END { print rate }' "$out/probe.csv")
  sets=()
  for rank in $(seq 0 7); do sets+=(--set "topology.links.$((2 * rank + 1)).bandwidth=$rate GB/s"); done
  copy_blocks=$n replay kernels.csv --copy-blocks "$n" "${sets[@]}" --set "collective.ranks=$(first_ranks 8)" \
    --set 'collective.algorithm=["ring", "parameter_server"]' --set "collective.bytes=$kernel_bytes"
done

echo "NCCL" >&2
gpus=$(nvidia-smi --list-gpus 2> /dev/null | wc -l || true)
for ranks in $( (echo 1 && echo "$gpus") | sort -un | grep -v '^0$'); do
  nccl "one GPU per rank" "$ranks" --
  nccl "one GPU per rank and NCCL's own" "$ranks" -- --library
done
# NCCL refuses two ranks of one machine on a GPU: each believes that it has a machine of its own, and they meet
# over the loopback. Their kernels take turns on the GPU while they spin: times say nothing, results may.
if command -v mpirun > /dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  one_gpu=(env NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME==lo NCCL_MNNVL_ENABLE=0
    NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_MIN_CTAS=1
    NCCL_MAX_CTAS=1 NCCL_NET_GDR_LEVEL=LOC NCCL_DEBUG=WARN CUDA_VISIBLE_DEVICES=0
    mpirun --oversubscribe --bind-to none -n 2 sh -c 'NCCL_HOSTID=host$OMPI_COMM_WORLD_RANK exec "$0" "$@"')
  nccl "two processes on one GPU" 2 "${one_gpu[@]}" --
  nccl "two processes on one GPU and NCCL's own" 2 "${one_gpu[@]}" -- --library
else
  echo "# two processes on one GPU: there is no mpirun" >> "$out/nccl.csv"
fi

page=docs/results/gpu-results.md
if $dry; then page=$out/gpu-results.md; fi
docs/results/make/gpu_results.py "$out" "$page"

if ! $dry && command -v compute-sanitizer > /dev/null && [[ -x build/tests/ringsim_tests ]]; then
  echo "compute-sanitizer" >&2
  compute-sanitizer --error-exitcode 1 build/tests/ringsim_tests "--source-file=*/tests/replay/cuda_device_test.cpp"
fi
echo "done in $SECONDS s: $out" >&2
