"""From a table to a certificate: fit, save, load with NumPy alone, certify.

    python examples/certify_odds.py 6_cardio.npz

Any set of ODDS or ADBench will do, as an npz file with X and y (1 = anomaly); without one the breast cancer
data of scikit-learn are used. The cells (`# %%`) run in an editor that knows them.
"""

# %% The rows. Labels are used at the end, to count, and by nothing before.
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import ocsdf

if len(sys.argv) > 1:
    name = Path(sys.argv[1]).stem
    with np.load(sys.argv[1], allow_pickle=False) as data:
        X, is_anomaly = data["X"].astype(float), data["y"].ravel() == 1
else:
    name = "breast cancer (malignant = anomaly)"
    X, target = load_breast_cancer(return_X_y=True)
    is_anomaly = target == 0

# %% Half of the normals are fitted, a quarter calibrates alarms, the rest and all anomalies are scored.
order = np.random.default_rng(0).permutation(np.flatnonzero(~is_anomaly))
fitted, calibration, rest = np.split(order, [len(order) // 2, 3 * len(order) // 4])
detector = ocsdf.OCSDF(random_state=0).fit(X[fitted])
print(f"{name}: {len(fitted)} normals fitted, proven constant {detector.lipschitz_!r}")

# %% One file, no pickle. Loading it imports no TensorFlow, and the bound is proven anew from the weights.
path = Path(tempfile.mkdtemp()) / "detector.ocsdf"
detector.save(path)
loaded = ocsdf.load(path, backend="numpy")
with_tensorflow = "tensorflow" in sys.modules
print(f"saved and loaded: {path.stat().st_size / 1024:.0f} KiB, TensorFlow imported: {with_tensorflow}")

# %% Certified metrics: what is left, at worst, when an attacker moves normals and anomalies by a radius.
normal, anomaly = loaded.score_samples(X[rest]), loaded.score_samples(X[is_anomaly])
radii = np.array([0.0, 0.1, 0.25, 0.5, 1.0])
constant = loaded.lipschitz_
auroc = ocsdf.certified_auroc(normal, anomaly, radii, lipschitz=constant)
population = ocsdf.certified_auroc(normal, anomaly, radii, lipschitz=constant, confidence=0.95)
precision = ocsdf.certified_average_precision(normal, anomaly, radii, lipschitz=constant)
alarms = ocsdf.certified_fpr_at_tpr(normal, anomaly, radii, lipschitz=constant)

# %% The same AUROC by what is proven of each row, where the score is flatter than its constant says.
lowest, highest = loaded.score_bounds(X[rest], radii)[0], loaded.score_bounds(X[is_anomaly], radii)[1]
by_row = [
    ocsdf.certified_auroc(low, high, 0.0, lipschitz=1.0) for low, high in zip(lowest, highest, strict=True)
]

# %% Decisions that no attack of the radius can change.
certificate = loaded.certify(X[is_anomaly])
caught = (certificate.decision(radii) == -1).mean(axis=1)

# %% Alarms at 5 %, also when normals were moved by the radius.
conformal = ocsdf.CertifiedConformal(constant).fit(loaded.score_samples(X[calibration]))
flagged = [(conformal.predict(anomaly, alpha=0.05, radius=radius) == -1).mean() for radius in radii]

# %% The table.
print("\nradius (standard deviations)        " + "".join(f"{radius:>8.2f}" for radius in radii))
rows = {
    "AUROC, these rows": auroc,
    "AUROC, these rows, by their bounds": by_row,
    "AUROC, population at 95 %": population,
    "average precision": precision,
    "false alarms at 95 % found": alarms,
    "anomalies surely caught": caught,
    "anomalies flagged at p <= 0.05": flagged,
}
for label, values in rows.items():
    print(f"{label:<36}" + "".join(f"{100 * value:>8.1f}" for value in values))
