#!/usr/bin/env bash
# Second act of `make demo`: jobs that really run, as processes of this machine.
# Says what it would need where it cannot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/demo-common.sh

crater="${1:?usage: scripts/demo-local.sh path/to/crater}"
echo
echo "== This machine's own CPU, memory and disk: crater serve --cluster local"
if [ "$(id -u)" != 0 ]; then
    echo "Jobs run as users of their own, which takes root. To see it:"
    echo "  sudo scripts/demo-local.sh $crater"
    exit 0
fi
folder="$(mktemp -d)"
log="$folder/server.log"
cat >"$folder/crater.yaml" <<'YAML'
cluster: {local: {reserve-memory: 256Mi}}
metrics: {interval: 1s}
queues:
  - {name: inference, kind: inference, priority: 20, policy: spread, minimum-run: 0s}
  - {name: training, kind: training, priority: 10, policy: binpack, minimum-run: 0s}
YAML
"$crater" serve --data "$folder/data" --config "$folder/crater.yaml" \
    --listen 127.0.0.1:0 2>"$log" &
server=$!
script="$(mktemp -d /var/tmp/crater-demo.XXXXXX)"
finish() {
    for job in $("$crater" job list -o json 2>/dev/null | sed -n 's/.*"id": *"\(job-[0-9]*\)".*/\1/p'); do
        "$crater" job cancel "$job" >/dev/null 2>&1 || true
    done
    for _ in $(seq 100); do
        [ -z "$(ls "$folder/data/local/claims" 2>/dev/null)" ] && break
        sleep 0.1
    done
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$folder" "$script"
}
trap finish EXIT
trap 'exit 0' INT TERM
if ! url="$(listening "$log")"; then
    # A container without cgroups, for example: the reason is the lesson.
    tail -1 "$log"
    trap - EXIT
    rm -rf "$folder" "$script"
    exit 0
fi
export CRATER_SERVER="$url" CRATER_TOKEN
CRATER_TOKEN="$(cat "$folder/data/admin-token")"
# Where other users can read it.
cp docs/examples/train.py "$script/"
chmod 755 "$script" "$script/train.py"

show cluster nodes
show job submit --name greedy --queue training --cpu 0.1 --memory 128Mi \
    --command "dd if=/dev/zero of=/dev/null bs=400M count=1"
"$crater" job wait job-001 --timeout 60s >/dev/null || true
show job list --all
cores="$(nproc)"
show job submit --name train --queue training --preemptible true --cpu "$cores" --memory 128Mi \
    --command "/usr/bin/python3 $script/train.py 3000"
for _ in $(seq 200); do
    # To its end, or the pipe would break and count as a failure.
    "$crater" job describe job-002 | grep "saved its progress" >/dev/null && break
    sleep 0.1
done
show job submit --name serve --queue inference --cpu "$cores" --memory 64Mi \
    --command "echo serving; sleep 2"
"$crater" job wait job-003 --timeout 60s >/dev/null
"$crater" job wait job-002 --timeout 120s >/dev/null
show job logs job-002
show job metrics job-002 --metric cpu
echo
echo "docs/local.md says what is limited, kept apart and kept when the server ends."
