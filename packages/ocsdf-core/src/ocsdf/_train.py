"""The alternating loop, one for both engines: negatives against networks, networks against negatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ocsdf._domain import Domain
from ocsdf._layers import Params
from ocsdf._negatives import affine_warp, jitter, newton_step
from ocsdf._network import LipschitzNet
from ocsdf._stiefel import SpectralCap

TRIM_START = 0.3  # share of the updates before the lowest normals are dropped: f must know them first
POOL = 8  # batches of negatives that Algorithm 2 trains on until the loss settles
SETTLED = 0.01  # Algorithm 2: relative fall of the mean loss over a pass under which the inner loop ends
PASSES = 20  # ... and the passes after which it ends anyway


class Engine(Protocol):
    """Gradients of the networks ``net``; the loop does the rest in NumPy."""

    net: LipschitzNet

    def set_params(self, params: tuple[Params, ...]) -> None:
        """Take the weights after an update."""
        ...

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (M, n) and input gradients (M, n, ...) on rows (M, n, ...)."""
        ...

    def loss_and_gradient(
        self, normal: np.ndarray, negative: np.ndarray, margin: float, weight: float, n_trimmed: int
    ) -> tuple[np.ndarray, np.ndarray, list[Params]]:
        """HKR loss (M,), values (M, n) of the normals, weight gradients along the constraints."""
        ...


@dataclass(frozen=True)
class Recipe:
    """What is trained on what, for how long. Lengths in the unit of the scaled features.

    ``updates`` is the number of weight updates, the first ``warmup`` of them on negatives that have not
    moved; ``updates_per_batch`` is K of Algorithm 3, or "converge" for Algorithm 2.
    """

    margin: float
    weight: float
    negatives: str | Callable[[np.ndarray, np.random.Generator], np.ndarray]
    domain: Domain
    updates: int
    warmup: int = 0
    batch_size: int = 128
    learning_rate: float = 1e-3
    learning_rate_end: float = 0.0
    steps: int = 4
    level: float = 0.0
    pull: str = "both"
    spread: float = 3.0
    trim: float = 0.0
    updates_per_batch: int | str = 1

    def rate(self, update: int) -> float:
        """Learning rate of an update: linear from the first to the last."""
        done = update / self.updates
        return self.learning_rate + (self.learning_rate_end - self.learning_rate) * done

    def n_trimmed(self, update: int) -> int:
        """Normals of a batch that the loss leaves out."""
        return int(self.trim * self.batch_size) if update >= TRIM_START * self.updates else 0


@dataclass
class History:
    """One entry per record of each list; ``update`` counts from 1.

    ``inside`` is the share of the normals of a batch with f > 0, ``gradient_norm`` the mean norm of the input
    gradient on a batch of normals and ``slope`` the largest seen so far: a measured lower bound of the
    constant.
    """

    update: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    slope: list[float] = field(default_factory=list)

    def add(self, update: int, loss: float, inside: float, norms: np.ndarray) -> None:
        """Append one record; ``norms`` are norms of input gradients."""
        self.update.append(update)
        self.loss.append(loss)
        self.inside.append(inside)
        self.gradient_norm.append(float(norms.mean()))
        self.slope.append(max(float(norms.max()), self.slope[-1] if self.slope else 0.0))


def train(
    engine: Engine,
    rows: np.ndarray,
    recipe: Recipe,
    rng: np.random.Generator,
    report: Callable[[int, History], None] | None = None,
) -> History:
    """Train ``engine.net`` on ``rows`` (n, ...) and return what was measured on the way.

    Every random draw is made here, from ``rng``, so both engines see the same batches. ``report`` is called
    after each update with their number so far.
    """
    loop = _Loop(engine, rows, recipe, rng, report or (lambda update, history: None))
    while loop.update < recipe.updates:
        if recipe.updates_per_batch == "converge":
            loop.until_settled([loop.negatives() for _ in range(POOL)])
        else:
            negative = loop.negatives()
            for _ in range(int(recipe.updates_per_batch)):
                loop.step(negative)
    return loop.history


class _Loop:
    def __init__(
        self,
        engine: Engine,
        rows: np.ndarray,
        recipe: Recipe,
        rng: np.random.Generator,
        report: Callable[[int, History], None],
    ) -> None:
        self.engine, self.rows, self.recipe, self.rng, self.report = engine, rows, recipe, rng, report
        self.update = 0
        self.history = History()
        self._optimizer = RMSprop()
        self._members = engine.net.members
        self._batches = _batches(len(rows), self._members, recipe.batch_size, rng)
        self._record_every = max(1, recipe.updates // 40)

    def until_settled(self, pool: list[np.ndarray]) -> None:
        """Algorithm 2: train on the pool until a pass no longer lowers the mean loss."""
        before = np.inf
        for _ in range(PASSES):
            after = float(np.mean([self.step(negative) for negative in pool]))
            if before - after <= SETTLED * abs(after):
                return
            before = after

    def step(self, negative: np.ndarray) -> float:
        """One update of the weights; the loss before it. No update once the budget is spent."""
        recipe = self.recipe
        if self.update >= recipe.updates:
            return np.inf
        normal = self.rows[next(self._batches)]
        loss, value, gradients = self.engine.loss_and_gradient(
            normal, negative, recipe.margin, recipe.weight, recipe.n_trimmed(self.update)
        )
        self._optimizer(self.engine, gradients, recipe.rate(self.update))
        self.update += 1
        if self.update % self._record_every == 0 or self.update == recipe.updates:
            _, slope = self.engine.value_and_gradient(normal)
            norms = np.sqrt((slope.reshape(normal.shape[0] * normal.shape[1], -1) ** 2).sum(axis=1))
            self.history.add(self.update, float(loss.mean()), float((value > 0).mean()), norms)
        self.report(self.update, self.history)
        return float(loss.mean())

    def negatives(self) -> np.ndarray:
        """One batch of negatives for each network, (M, batch, ...)."""
        recipe, shape = self.recipe, self.rows.shape[1:]
        n = self._members * recipe.batch_size
        if recipe.negatives == "newton":
            points = recipe.domain.sample(n, shape, self.rng).astype(self.rows.dtype)
            steps = recipe.steps if self.update >= recipe.warmup else 0
            fraction = (self.rng.uniform(size=n) / max(steps, 1)).astype(points.dtype)
            for _ in range(steps):
                points, _ = newton_step(
                    self._flat, points, fraction, recipe.domain, recipe.level, recipe.pull
                )
        else:
            drawn = self.rows[self.rng.integers(len(self.rows), size=n)]
            if recipe.negatives == "jitter":
                points = jitter(drawn, recipe.spread, self.rng)
            else:
                move = affine_warp if isinstance(recipe.negatives, str) else recipe.negatives
                points = np.asarray(move(drawn, self.rng), self.rows.dtype)
        return points.reshape(self._members, recipe.batch_size, *shape)

    def _flat(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = self.engine.value_and_gradient(points.reshape(self._members, -1, *points.shape[1:]))
        return value.reshape(-1), slope.reshape(points.shape)


class RMSprop:
    """Gradients along the constraint over their running root mean square, then a cap and the constraint.

    Source: Tieleman and Hinton, lecture 6.5, 2012, with Keras's constants.
    """

    DECAY, EPSILON, CAP = 0.9, 1e-7, 0.03
    EXACT_EVERY = 16  # updates after which what the moves drifted is undone

    def __init__(self) -> None:
        self._updates = 0
        self._squares: dict[tuple[int, str], np.ndarray] = {}
        self._caps: dict[tuple[int, str], SpectralCap] = {}

    def __call__(self, engine: Engine, gradients: list[Params], rate: float) -> None:
        """Move the weights of ``engine`` one step."""
        self._updates += 1
        exact, moved = self._updates % self.EXACT_EVERY == 0, []
        net = engine.net
        for i, (layer, params, slopes) in enumerate(zip(net.layers, net.params, gradients, strict=True)):
            steps = {name: self._step((i, name), slope, rate) for name, slope in slopes.items()}
            moved.append(layer.move(params, steps, exact))
        engine.set_params(tuple(moved))

    def _step(self, key: tuple[int, str], slope: np.ndarray, rate: float) -> np.ndarray:
        step = np.square(slope)
        if key not in self._squares:
            self._squares[key] = np.zeros_like(slope)
        squares = self._squares[key]  # over 1 - DECAY, which saves a pass over memory
        squares *= self.DECAY
        squares += step
        np.sqrt(squares, out=step)
        share = math.sqrt(1 - self.DECAY)
        step += self.EPSILON / share
        np.divide(slope, step, out=step)
        step *= rate / share
        if key[1] == "kernel":
            cap = self._caps.setdefault(key, SpectralCap(self.CAP))
            cap(step.reshape(len(step), -1, step.shape[-1]))
        return step


def _batches(n: int, members: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Row numbers (members, size): each member walks through permutations of all rows, end to end."""
    order = np.empty((members, 0), np.int64)
    while True:
        while order.shape[1] < size:
            fresh = np.stack([rng.permutation(n) for _ in range(members)])
            order = np.concatenate([order, fresh], axis=1)
        yield order[:, :size]
        order = order[:, size:]
