"""Pictures of meshes and points without a display: one ray a pixel, parallel projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ocsdf_bench.shapes.metrics import gradient
from ocsdf_bench.shapes.shape import Field
from ocsdf_bench.shapes.sphere_tracing import sphere_trace

if TYPE_CHECKING:
    import trimesh

_LIGHT = np.array([0.35, 0.55, 0.76])


@dataclass(frozen=True)
class Camera:
    """A parallel camera that looks at the origin.

    azimuth, elevation : degrees. up : index of the axis that points up. half_width : of the picture.
    """

    azimuth: float = -55.0
    elevation: float = 25.0
    up: int = 2
    half_width: float = 0.85

    @property
    def axes(self) -> np.ndarray:
        """Rows right, up and towards the viewer (3, 3)."""
        a, e = np.radians([self.azimuth, self.elevation])
        viewer = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        frame = np.stack([right, np.cross(viewer, right), viewer])
        return np.roll(frame, self.up - 2, axis=1)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Right, up and depth (n, 3) of points; a larger depth is nearer to the viewer."""
        return points @ self.axes.T

    def rays(self, pixels: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions (pixels², 3), row by row from the top left."""
        ticks = (np.arange(pixels) + 0.5) / pixels * 2 - 1
        across, down = np.meshgrid(ticks, ticks)
        flat = np.stack([across.ravel(), -down.ravel(), np.full(pixels**2, 2.0 / self.half_width)], 1)
        return self.half_width * flat @ self.axes, np.tile(-self.axes[2], (pixels**2, 1))


def camera_for(name: str) -> Camera:
    """A camera that sees the front: files .obj have the second axis up by custom, all others the third."""
    return Camera(azimuth=125.0, up=1) if name.endswith(".obj") else Camera()


def render_mesh(mesh: trimesh.Trimesh, camera: Camera, pixels: int = 320, supersample: int = 2) -> np.ndarray:
    """Picture (pixels, pixels, 4) of a mesh, floats in [0, 1], transparent where no ray hits.

    Faces are lit from both sides, because leaky meshes do not orient them alike.
    """
    fine = pixels * supersample
    image = np.zeros((fine * fine, 4))
    if len(mesh.faces):
        origins, directions = camera.rays(fine)
        faces = mesh.ray.intersects_first(origins, directions)
        seen = faces >= 0
        image[seen] = shade(mesh.face_normals[faces[seen]], camera)
    return _average(image.reshape(fine, fine, 4), supersample)


def render_field(
    field: Field, camera: Camera, lipschitz: float, pixels: int = 320
) -> tuple[np.ndarray, np.ndarray]:
    """Picture (pixels, pixels, 4) of a field's zero level by sphere tracing, and evaluations a pixel.

    ``lipschitz`` is the proven constant of ``field``, which makes every step of a ray safe. No mesh is made.
    """
    origins, directions = camera.rays(pixels)
    trace = sphere_trace(field, origins, directions, lipschitz=lipschitz)
    image = np.zeros((pixels * pixels, 4))
    ends = (origins + trace.distance[:, None] * directions)[trace.hit]
    slope = gradient(field, ends)
    image[trace.hit] = shade(-slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12), camera)
    return image.reshape(pixels, pixels, 4), trace.steps.reshape(pixels, pixels)


def shade(normals: np.ndarray, camera: Camera) -> np.ndarray:
    """Colours (n, 4) of visible places from their normals: one hue, lit over the viewer's shoulder."""
    facing = normals @ camera.axes.T
    facing = facing * np.where(facing[:, 2:] < 0, -1.0, 1.0)
    brightness = 0.35 + 0.65 * np.clip(facing @ _LIGHT, 0, 1)
    return np.concatenate(
        [brightness[:, None] * np.array([0.78, 0.84, 0.92]), np.ones((len(normals), 1))], axis=1
    )


def _average(image: np.ndarray, factor: int) -> np.ndarray:
    """Mean of factor² pixels with colours weighted by their cover."""
    image = image.copy()
    image[..., :3] *= image[..., 3:]
    n = len(image) // factor
    image = image.reshape(n, factor, n, factor, 4).mean((1, 3))
    image[..., :3] /= np.maximum(image[..., 3:], 1e-9)
    return image
