"""Small images in the layout of OCI (OCI Image Layout Specification)."""

import gzip
import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Image(NamedTuple):
    """An image on disk."""

    directory: Path
    digest: str
    config_digest: str
    #: Size of configuration and layer in bytes.
    total_size: int


def make_image(directory: Path, content: str = "hello") -> Image:
    """Write an image that has one file with this content."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    layer = _layer(content)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [_digest(gzip.decompress(layer))]},
    }
    config_blob = _described(blobs, CONFIG, json.dumps(config).encode())
    layer_blob = _described(blobs, LAYER, layer)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_blob,
        "layers": [layer_blob],
    }
    described = _described(blobs, MANIFEST, json.dumps(manifest).encode())
    index = {"schemaVersion": 2, "manifests": [described]}
    (directory / "index.json").write_text(json.dumps(index))
    (directory / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    return Image(
        directory=directory,
        digest=described["digest"],
        config_digest=config_blob["digest"],
        total_size=config_blob["size"] + layer_blob["size"],
    )


def _layer(content: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("hello.txt")
        entry.size = len(content.encode())
        archive.addfile(entry, io.BytesIO(content.encode()))
    return gzip.compress(file.getvalue(), mtime=0)


def _described(blobs: Path, media_type: str, content: bytes) -> dict[str, Any]:
    digest = _digest(content)
    (blobs / digest.partition(":")[2]).write_bytes(content)
    return {"mediaType": media_type, "digest": digest, "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"
