#!/usr/bin/env bash
# One call on a bare machine with a GPU, one stage after the other:
#     bash experiments/on_gpu.sh OUT JOBS WHAT MINUTES [WHAT MINUTES …]
# WHAT is a group (linear, slalom, reviews, runtime) or names of experiments with commas between.
# carry/data is the folder of data, carry/minilm a packed MiniLM, carry/models trained models.
# Finished parts are in OUT/parts.jsonl line by line; tables and the log follow.
set -u
out=$1 jobs=$2
shift 2
site=$(mktemp -d)
for name in threadpoolctl click joblib cloudpickle loky scipy sklearn narwhals lightgbm; do
  python3 -c "import $name" 2>/dev/null && continue
  file=$(ls wheels/${name/sklearn/scikit_learn}-*.whl 2>/dev/null | head -1)
  if [ -n "$file" ]; then python3 -m zipfile -e "$file" "$site"; else echo "no $name"; fi
done
export PYTHONPATH="$PWD/src:$PWD:$site" HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true RAYON_NUM_THREADS=2
export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 PYTHONUNBUFFERED=1
if [ -d carry/minilm ]; then python3 -m training.packing carry/minilm carry/data/minilm; fi
if [ -d carry/models ]; then cp -r carry/models "$site/models"; fi
data=(); if [ -d carry/data ]; then data=(--data carry/data); fi
mkdir -p "$site/mps" "$out"
if [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && [ -z "${NO_MPS:-}" ]; then  # else it is the caller's
  export CUDA_MPS_PIPE_DIRECTORY=$site/mps CUDA_MPS_LOG_DIRECTORY=$site/mps
  if ! { nvidia-cuda-mps-control -d &&
         timeout 60 python3 -c "import torch; print(torch.ones(9).cuda().sum())"; }; then
    echo quit | timeout 10 nvidia-cuda-mps-control
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    echo "without the multi-process service"
  fi
fi
while [ $# -ge 2 ]; do
  at_once=$jobs
  case $1 in
    runtime) what=(all --group "$1") at_once=1 ;;  # alone, or its seconds mean little
    linear|slalom|reviews) what=(all --group "$1") ;;
    *) what=(${1//,/ }) ;;
  esac
  python3 -m experiments "${what[@]}" --scale "${SCALE:-paper}" --jobs "$at_once" --minutes "$2" \
    --out "$out" --models "$site/models" "${data[@]}" ${DEVICE:+--device "$DEVICE"} 2>&1 | tee -a "$out/log.txt"
  shift 2
done
(cd "$out" && tar czf tables.tgz *.json && rm -f *.json)
