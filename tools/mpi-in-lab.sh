#!/usr/bin/env bash
# A replay by Open MPI in the network that `ringsim lab` builds for a scenario: mpirun with a process in each namespace, over
# TCP through the shaped ports. The network is taken down at the end. Needs root, iproute2, Open MPI.
# Usage: tools/mpi-in-lab.sh RINGSIM SCENARIO [options of ringsim replay]
set -euo pipefail
ringsim=$(realpath "${1:?usage: tools/mpi-in-lab.sh RINGSIM SCENARIO [options]}")
scenario=$(realpath "${2:?usage: tools/mpi-in-lab.sh RINGSIM SCENARIO [options]}")
shift 2
command -v mpirun > /dev/null || { echo "mpi-in-lab: mpirun is missing (Debian: openmpi-bin)" >&2; exit 5; }
settings=()  # those of --set shape the network as well
for ((i = 1; i <= $#; ++i)); do
  [[ ${!i} != --set ]] || { next=$((i + 1)); settings+=(--set "${!next}"); }
done

folder=$(mktemp -d)
end() {
  "$ringsim" lab down "$scenario" "${settings[@]}" 2> /dev/null || true
  rm -rf "$folder"
}
trap end EXIT
"$ringsim" lab up "$scenario" "${settings[@]}" > "$folder/nodes"
awk 'NR > 1 {print $4, $3}' "$folder/nodes" > "$folder/namespaces"
awk '{print $1, "slots=1"}' "$folder/namespaces" > "$folder/hosts"

# What mpirun takes for ssh: an address, and a command for a shell there. A host name of its own, or Open MPI takes all for one
# machine and does not use the network.
cat > "$folder/agent" << AGENT
#!/bin/sh
namespace=\$(awk -v address="\$1" '\$1 == address {print \$2}' "$folder/namespaces")
shift
exec ip netns exec "\$namespace" unshare -u sh -c "hostname \$namespace; \$*"
AGENT
chmod +x "$folder/agent"

first=$(awk 'NR == 1 {print $2}' "$folder/namespaces")
ip netns exec "$first" unshare -u bash -c 'hostname "$0"; exec "$@"' "$first" \
  mpirun --allow-run-as-root -n "$(wc -l < "$folder/hosts")" --hostfile "$folder/hosts" --mca plm_rsh_agent "$folder/agent" \
  --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
  "$ringsim" replay "$scenario" --backend mpi "$@"
