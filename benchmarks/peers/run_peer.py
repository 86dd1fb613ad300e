#!/usr/bin/env python3
"""Measures one peer on one model, and prints a line of JSON.

    run_peer.py onnxruntime-genai|openvino-genai MODEL PROMPT GEN BATCH THREADS

{"prefill": tokens/s, "decode": tokens/s} for BATCH prompts of PROMPT tokens each
and GEN further tokens. A first short generation warms up.
"""

import json
import sys
import time

import numpy as np


def random_tokens(batch, count, vocabulary):
    return np.random.default_rng(0).integers(0, vocabulary, (batch, count)).astype(np.int32)


def onnxruntime_genai(path, prompt, gen, batch, threads):
    import onnxruntime_genai as og

    config = og.Config(path)
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {
        "intra_op_num_threads": threads, "inter_op_num_threads": 1}}}}))
    model = og.Model(config)
    with open(path + "/genai_config.json") as file:
        vocabulary = json.load(file)["model"]["vocab_size"]

    def measure(prompt, gen):
        parameters = og.GeneratorParams(model)
        parameters.set_search_options(do_sample=False, batch_size=batch, min_length=prompt + gen + 2,
                                      max_length=prompt + gen + 2)
        generator = og.Generator(model, parameters)
        start = time.perf_counter()
        generator.append_tokens(random_tokens(batch, prompt, vocabulary))
        generator.generate_next_token()
        middle = time.perf_counter()
        for _ in range(gen):
            generator.generate_next_token()
        end = time.perf_counter()
        return {"prefill": batch * prompt / (middle - start), "decode": batch * gen / (end - middle)}

    measure(16, 2)
    return measure(prompt, gen)


def openvino_genai(path, prompt, gen, batch, threads):
    import openvino as ov
    import openvino_genai as ovg

    scheduler = ovg.SchedulerConfig()
    scheduler.cache_size = 1  # GB, which then stays
    # Every prompt in the first step, whose end is the first token of all.
    scheduler.max_num_seqs = batch
    scheduler.max_num_batched_tokens = max(512, batch * prompt)
    pipe = ovg.ContinuousBatchingPipeline(path, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})

    def measure(prompt, gen):
        config = ovg.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = gen + 1
        config.ignore_eos = True
        prompts = [ov.Tensor(row[None]) for row in random_tokens(batch, prompt, 30000).astype(np.int64)]
        start = time.perf_counter()
        found = pipe.generate(prompts, [config] * batch)
        total = time.perf_counter() - start
        first = found[0].perf_metrics.get_ttft().mean / 1e3
        return {"prefill": batch * prompt / first, "decode": batch * gen / (total - first)}

    measure(16, 2)
    return measure(prompt, gen)


PEERS = {"onnxruntime-genai": onnxruntime_genai, "openvino-genai": openvino_genai}

if __name__ == "__main__":
    if len(sys.argv) != 7 or sys.argv[1] not in PEERS:
        sys.exit(__doc__)
    print(json.dumps(PEERS[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))))
