"""Input-gradient norm of the network of images on MNIST, for each constraint on its convolutions.

    python benchmarks/gradient_norm.py --data DIR [--digit 0] [--steps 300] [--width 0.125] [--seed 0]

A certified radius is a score over the proven constant. The nearer the gradient norm of f is to that constant,
the more of a score an attack would really have to pay for, so the ratio of the two is what a constraint is
judged by. Every constraint gets the same network, rows, recipe (the paper's) and seed; the table is Markdown.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from sklearn.metrics import roc_auc_score

from ocsdf import OCSDF, vgg
from ocsdf._kernels import KERNELS
from ocsdf_bench.dataset import DATASETS, Data
from ocsdf_bench.source import MirrorOrDownload

ROWS = 500  # held-out images of each kind
BATCH = 32


def images(folder: Path) -> Data:
    """MNIST from the files in ``folder``."""
    return DATASETS["mnist"].load(MirrorOrDownload(data_dir=folder, offline=True))


def fit(kernel: str, rows: np.ndarray, steps: int, width: float, seed: int) -> OCSDF:
    """The paper's recipe of images at a reduced budget: margin 0.02 sqrt(2 d) of [-1, 1], T = 4."""
    model = OCSDF.paper(
        network=vgg(width, kernel), margin=0.4, weight=200.0, steps=4, epochs=None, max_steps=steps,
        warmup_epochs=0, batch_size=BATCH, learning_rate=1e-3, learning_rate_end=1e-6, scale="none",
        random_state=seed,
    )  # fmt: skip
    return model.fit(rows)


def gradient_norm(model: OCSDF, rows: np.ndarray) -> float:
    """Mean l2 norm of the input gradient."""
    slope = model.input_gradient(rows)
    return float(np.linalg.norm(slope.reshape(len(slope), -1), axis=1).mean())


def main() -> None:
    """Fit a network for each constraint, before and after training, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist/")
    parser.add_argument("--digit", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=float, default=0.125)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), choices=list(KERNELS))
    options = parser.parse_args()
    data = images(options.data)
    rows = data.X[data.y == options.digit]
    is_digit = data.y_test == options.digit
    noise = np.random.default_rng(options.seed).uniform(size=(ROWS, *rows.shape[1:]))
    kinds = {"digit": data.X_test[is_digit][:ROWS], "others": data.X_test[~is_digit][:ROWS], "noise": noise}
    print(
        f"Digit {options.digit}, {len(rows)} images, vgg(width={options.width:g}), batch {BATCH}, "
        f"T = 4, seed {options.seed}\n"
    )
    print("| kernel | updates | constant | " + " | ".join(kinds) + " | digit / constant | AUROC | minutes |")
    print("| --- |" + " ---: |" * (len(kinds) + 5))
    for kernel in options.kernels:
        for steps in (0, options.steps):
            start = time.perf_counter()
            model = fit(kernel, rows, steps, options.width, options.seed)
            minutes = (time.perf_counter() - start) / 60
            norms = {kind: gradient_norm(model, some) for kind, some in kinds.items()}
            normal, anomaly = (model.score_samples(kinds[kind]) for kind in ("digit", "others"))
            auroc = roc_auc_score(np.repeat([1, 0], ROWS), np.concatenate([normal, anomaly]))
            cells = [f"{norm:.3f}" for norm in norms.values()]
            share = norms["digit"] / model.lipschitz_
            print(
                f"| {kernel} | {steps} | {model.lipschitz_:.3f} | {' | '.join(cells)} | {share:.3f} "
                f"| {100 * auroc:.1f} | {minutes:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
