#!/usr/bin/env python3
"""Packs the programs of a pinned Postgres archive as a container image that keeps the official
image's contract, for the tests of the docker engine where the official image cannot be had.

    build.py VERSION INSTALLATION OUT.tar [ARCHITECTURE]

ARCHITECTURE is what the image says of itself, if not this machine's: no daemon looks. INSTALLATION is a folder with bin, lib and share. OUT.tar is for `docker load`. The same input gives
the same image, byte for byte. Needs busybox (static), setpriv and ldd of this system.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

POSTGRES = 999


class Root:
    """The root file system, as tar entries in order of their names."""

    def __init__(self):
        self.entries = {}

    def directory(self, path, mode=0o755, owner=0):
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.directory(parent)
        self.entries.setdefault(path, ("directory", None, mode, owner))

    def file(self, path, data, mode=0o644):
        self.directory(os.path.dirname(path))
        self.entries[path] = ("file", data, mode, 0)

    def link(self, path, target):
        self.directory(os.path.dirname(path))
        self.entries[path] = ("link", target, 0o777, 0)

    def copy(self, source, path):
        with open(source, "rb") as file:
            self.file(path, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def tar(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(self.entries):
                kind, content, mode, owner = self.entries[path]
                info = tarfile.TarInfo(path)
                info.mode, info.uid, info.gid = mode, owner, owner
                if kind == "directory":
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                elif kind == "link":
                    info.type, info.linkname = tarfile.SYMTYPE, content
                    tar.addfile(info)
                else:
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return packed.getvalue()


def installation(root, folder):
    """The server's own files; what only compiles or embeds other languages is left out."""
    for directory, _, files in os.walk(folder):
        for name in files:
            source = os.path.join(directory, name)
            path = os.path.relpath(source, folder)
            if path.startswith("include") or path.endswith(".a") or "pgxs" in path:
                continue
            if "plpython" in path or "plperl" in path or "pltcl" in path:
                continue
            if os.path.islink(source):
                root.link(f"usr/local/{path}", os.readlink(source))
            else:
                root.copy(source, f"usr/local/{path}")


def libraries(root, folder):
    """The shared libraries of this system that the programs name, and theirs."""
    programs = [os.path.join(folder, "bin", name) for name in sorted(os.listdir(os.path.join(folder, "bin")))]
    modules = os.path.join(folder, "lib")
    for directory, _, files in os.walk(modules):
        programs += [os.path.join(directory, name) for name in files if ".so" in name]
    programs.append(shutil.which("setpriv"))
    found = set()
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        for line in said.splitlines():
            for word in line.split():
                if word.startswith("/") and not word.startswith(os.path.abspath(folder)):
                    found.add(word)
    for library in sorted(found):
        root.copy(os.path.realpath(library), library.lstrip("/"))


def system(root):
    busybox = shutil.which("busybox")
    root.copy(busybox, "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split():
        if applet not in ("busybox", "setpriv"):
            root.link(f"bin/{applet}", "busybox")
    root.copy(shutil.which("setpriv"), "usr/bin/setpriv")
    root.file("etc/passwd", b"root:x:0:0::/root:/bin/sh\npostgres:x:%d:%d::/var/lib/postgresql:/bin/sh\n" % (POSTGRES, POSTGRES))
    root.file("etc/group", b"root:x:0:\npostgres:x:%d:\n" % POSTGRES)
    root.directory("tmp", 0o1777)
    root.directory("root", 0o700)
    root.directory("docker-entrypoint-initdb.d")
    root.directory("var/run/postgresql", 0o3777, POSTGRES)
    # The server is built to read the system's time zones.
    for directory, _, files in os.walk("/usr/share/zoneinfo"):
        for name in files:
            source = os.path.join(directory, name)
            if os.path.islink(source) and not os.path.isabs(os.readlink(source)):
                root.link(source.lstrip("/"), os.readlink(source))
            else:
                root.copy(source, source.lstrip("/"))


def main():
    version, folder, out = sys.argv[1:4]
    own = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    architecture = sys.argv[4] if len(sys.argv) > 4 else own
    major = int(version.split(".")[0])
    # 18 moved its data below a folder of the major version, and mounts the folder above.
    data = "/var/lib/postgresql/data" if major < 18 else f"/var/lib/postgresql/{major}/docker"
    volume = "/var/lib/postgresql/data" if major < 18 else "/var/lib/postgresql"
    root = Root()
    system(root)
    installation(root, folder)
    libraries(root, folder)
    root.directory("var/lib/postgresql", 0o1777 if major >= 18 else 0o755, POSTGRES)
    if major < 18:
        root.directory(data.lstrip("/"), 0o1777, POSTGRES)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "entrypoint"), "rb") as file:
        root.file("usr/local/bin/docker-entrypoint.sh", file.read(), 0o755)
    sample = "usr/local/share/postgresql/postgresql.conf.sample"
    if sample not in root.entries:
        sample = next(path for path in root.entries if path.endswith("/postgresql.conf.sample"))
    settings = root.entries[sample][1] + b"\nlisten_addresses = '*'\nunix_socket_directories = '/var/run/postgresql'\n"
    root.file(sample, settings)

    layer = root.tar()
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Env": [
                "PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/bin",
                f"PG_MAJOR={major}",
                f"PG_VERSION={version}",
                f"PGDATA={data}",
            ],
            "Entrypoint": ["docker-entrypoint.sh"],
            "Cmd": ["postgres"],
            "Volumes": {volume: {}},
            "ExposedPorts": {"5432/tcp": {}},
            "StopSignal": "SIGINT",
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created_by": "remeasure: programs of the pinned archive"}],
    }
    files = {
        "layer.tar": layer,
        "config.json": json.dumps(config, sort_keys=True).encode(),
        "manifest.json": json.dumps(
            [{"Config": "config.json", "RepoTags": [f"remeasure-test/postgres:{version}"], "Layers": ["layer.tar"]}]
        ).encode(),
    }
    with tarfile.open(out, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
