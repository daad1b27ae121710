#!/usr/bin/env bash
# One call on a bare machine with a GPU: bash experiments/on_gpu.sh GROUP OUT [JOBS] [MINUTES] [options]
# What is missing comes from wheels/ (carried along); several processes share the card where its
# multi-process service starts. Finished parts are in OUT/parts.jsonl line by line.
set -u
group=$1 out=$2 jobs=${3:-12} minutes=${4:-8}
shift $(( $# < 4 ? $# : 4 ))
site=$(mktemp -d)
for name in threadpoolctl click joblib scipy sklearn; do
  python3 -c "import $name" 2>/dev/null && continue
  file=$(ls wheels/${name/sklearn/scikit_learn}-*.whl 2>/dev/null | head -1)
  if [ -n "$file" ]; then python3 -m zipfile -e "$file" "$site"; else echo "no $name"; fi
done
export PYTHONPATH="$PWD/src:$PWD:$site" HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
export CUDA_MPS_PIPE_DIRECTORY=$site/mps CUDA_MPS_LOG_DIRECTORY=$site/mps
mkdir -p "$site/mps" "$out"
if ! { [ -z "${NO_MPS:-}" ] && nvidia-cuda-mps-control -d &&
       timeout 60 python3 -c "import torch; print(torch.ones(9).cuda().sum())"; }; then
  echo quit | timeout 10 nvidia-cuda-mps-control
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  echo "without the multi-process service"
fi
nvidia-smi --query-gpu=name,memory.used --format=csv,noheader
python3 -m experiments all --group "$group" --scale paper --jobs "$jobs" --minutes "$minutes" \
  --out "$out" --models "$site/models" --device cuda "$@" 2>&1 | tee "$out/log.txt"
cd "$out" && tar czf tables.tgz *.json && rm *.json
