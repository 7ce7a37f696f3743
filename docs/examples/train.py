#!/usr/bin/env python3
"""Trains a tiny model in the way that Crater's preemption expects.

It saves its progress every STEPS_A_SAVE steps and when it is told to end
(SIGTERM), says so by touching $CRATER_CHECKPOINT_DIR/.done, and goes on from
there when it starts again. Its result does not depend on how often that was.

    crater job submit --name train --queue training --preemptible true \
        --cpu 1 --memory 256Mi --command 'python3 /opt/train.py 2000'
"""

import json
import os
import random
import signal
import sys
import time

STEPS_A_SAVE = 100
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
PAUSE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.002

folder = os.environ.get("CRATER_CHECKPOINT_DIR", ".")
file = os.path.join(folder, "state.json")
told = False


def tell(*_):
    """Remembers that it is to end; the loop saves when a step is whole."""
    global told
    told = True


def save(state):
    """Writes all of it or nothing, then says that it is there."""
    with open(file + ".new", "w") as out:
        json.dump(state, out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(file + ".new", file)
    with open(os.path.join(folder, ".done"), "w") as done:
        done.write(str(state["step"]))


def load():
    """Goes on where it was, with the same random numbers."""
    if os.environ.get("CRATER_RESUME") == "1" and os.path.exists(file):
        with open(file) as saved:
            state = json.load(saved)
        kind, numbers, gauss = state["random"]
        random.setstate((kind, tuple(numbers), gauss))
        print(f"goes on after step {state['step']}", flush=True)
        return state
    random.seed(7)
    return {"step": 0, "weight": 0.0, "bias": 0.0}


signal.signal(signal.SIGTERM, tell)
state = load()
while state["step"] < STEPS:
    # y = 3x + 1 with noise; stochastic gradient descent on the square error.
    x = random.uniform(-1, 1)
    y = 3 * x + 1 + random.gauss(0, 0.1)
    error = state["weight"] * x + state["bias"] - y
    state["weight"] -= 0.05 * error * x
    state["bias"] -= 0.05 * error
    state["step"] += 1
    if told or state["step"] % STEPS_A_SAVE == 0:
        state["random"] = random.getstate()
        save(state)
    if told:
        print(f"told to end, saved step {state['step']}", flush=True)
        sys.exit(0)
    time.sleep(PAUSE)
print(f"result {state['weight']!r} {state['bias']!r}", flush=True)
