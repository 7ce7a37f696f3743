#!/usr/bin/env bash
# Last act of `make demo`: a server of one's own, with tenants, quotas, jobs,
# one that is preempted and goes on, and a policy that is swapped while they run. Stays up until Ctrl-C where a
# person watches; ends by itself elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/demo-common.sh

crater="${1:?usage: scripts/demo.sh path/to/crater}"
data="$(mktemp -d)/data"
log="$(dirname "$data")/server.log"

# The usual configuration with one small machine more, and jobs that may be
# preempted at once instead of after a minute: nobody wants to watch a minute.
config="$(dirname "$data")/crater.yaml"
cat >"$config" <<'YAML'
cluster:
  nodes:
    - {name: gpu-node, count: 8, cpu: 128, memory: 1Ti, disk: 4000,
       cards: {count: 8, model: A100-80GB, memory: 80Gi, nvlink: 8}}
    - {name: small-node, cpu: 32, memory: 128Gi, labels: {pool: small},
       cards: {count: 4, model: T4, memory: 16Gi}}
queues:
  - {name: inference, kind: inference, priority: 20, policy: spread, fallback: spread}
  - {name: training, kind: training, priority: 10, policy: binpack, minimum-run: 0s}
  - {name: offline, kind: offline, policy: priority}
YAML
"$crater" serve --data "$data" --config "$config" --listen 127.0.0.1:0 2>"$log" &
server=$!
finish() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$(dirname "$data")"
}
trap finish EXIT
trap 'exit 0' INT TERM

if ! url="$(listening "$log")"; then
    cat "$log" >&2
    exit 1
fi
export CRATER_SERVER="$url" CRATER_TOKEN
CRATER_TOKEN="$(cat "$data/admin-token")"


echo
echo "== A server of your own: 8 simulated nodes of 8 cards and one of 4, 3 queues, at $url"
show quota set --tenant team-nlp --gpu-hard 8 --cpu-hard 128 --memory-hard 1Ti
show job submit \
    --name llm-inference-7b \
    --image registry.your-domain.com/llm-inference:v1.0 \
    --gpu 1 --gpu-memory 40960 --cpu 8 --memory 32Gi --disk-io 100 \
    --command "python serve.py --model /models/llama-7b --port 8080" \
    --queue inference --priority high
show job submit \
    --name llm-finetune-7b \
    --image registry.your-domain.com/llm-train:v2.0 \
    --gpu 4 --gpu-memory 327680 --cpu 32 --memory 128Gi --disk-io 500 \
    --command "torchrun --nproc_per_node=4 train.py --model /models/llama-7b --data /data/finetune" \
    --queue training --priority medium --preemptible true

echo
echo "== One pool: inference takes the room of training, which saves its progress and goes on"
small=(--gpu 4 --gpu-exclusive true --cpu 16 --memory 64Gi --node-selector pool=small)
show job submit --name pool-train --queue training "${small[@]}" --preemptible true \
    --env CRATER_SIMULATE_SECONDS=10 --env CRATER_SIMULATE_CHECKPOINT=1
train="$("$crater" job list --name pool-train -o json | sed -n 's/.*"id": *"\(job-[0-9]*\)".*/\1/p')"
for _ in $(seq 200); do
    "$crater" job logs "$train" | grep -q "saves its progress" && break
    sleep 0.1
done
show job submit --name pool-serve --queue inference "${small[@]}" --env CRATER_SIMULATE_SECONDS=3
serve="$("$crater" job list --name pool-serve -o json | sed -n 's/.*"id": *"\(job-[0-9]*\)".*/\1/p')"
"$crater" job wait "$serve" --for running --timeout 60s >/dev/null
show job list
"$crater" job wait "$train" --timeout 120s >/dev/null
show job logs "$train"
printf '\n$ crater job describe %s | grep -A 4 "In the Pool"\n' "$train"
"$crater" job describe "$train" | grep -A 4 "In the Pool"

echo
echo "== A workload beside them: 40 jobs of team-nlp, more than its quota of 8 cards"
for i in $(seq 40); do
    case $((i % 4)) in
        0) size=(--gpu 2 --cpu 16 --memory 64Gi) ;;
        1) size=(--gpu 0.5 --cpu 4 --memory 16Gi) ;;
        2) size=(--gpu 0.3 --cpu 2 --memory 8Gi) ;;
        *) size=(--cpu 4 --memory 8Gi) ;;
    esac
    "$crater" job submit --name "work-$i" --queue training --tenant team-nlp "${size[@]}" \
        --env "CRATER_SIMULATE_SECONDS=$((5 + i % 30))" >/dev/null
done
show job list --limit 12
last="$("$crater" job list --status pending --limit 1 -o json | sed -n 's/.*"id": *"\(job-[0-9]*\)".*/\1/p' | head -1)"
if [ -n "$last" ]; then
    echo
    echo "== Why does $last wait?"
    printf '$ crater job describe %s | grep -A 3 "Scheduling Constraints"\n' "$last"
    "$crater" job describe "$last" | grep -A 3 "Scheduling Constraints"
fi
show quota get --tenant team-nlp

echo
echo "== Another policy for one queue, without a restart"
show queue set training --policy shadow-price
show policy status
show cluster metrics
show job logs job-001

echo
echo "The API with a page to try it on: $url/docs. From another terminal:"
echo "  export CRATER_SERVER=$url CRATER_TOKEN=$CRATER_TOKEN"
echo "  crater job list --watch"
if [ -t 1 ] && [ -z "${CI:-}" ]; then
    echo "Ctrl-C ends the server and removes what it kept."
    wait "$server"
fi
