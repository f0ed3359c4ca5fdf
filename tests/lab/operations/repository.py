"""Makes newer packages of installed ones, and a repository of them. Runs on a machine, as root, with its own Python.

Arguments: a directory, then names of packages. There it makes `orig` with the packages as they are, `newer` with a
higher revision. Prints the versions.
"""

import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile

MAGIC = b"!<arch>\n"


def members(deb):
    """The files in a package (ar(5)), by name."""
    found, at = {}, len(MAGIC)
    while at < len(deb):
        name, size = deb[at : at + 16].decode().strip().rstrip("/"), int(deb[at + 48 : at + 58])
        found[name] = deb[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return found


def archive(files):
    """The package that has these files."""
    parts = [MAGIC]
    for name, content in files.items():
        parts.append(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
        parts.append(content + b"\n" * (len(content) % 2))
    return b"".join(parts)


def changed(control, version):
    """The description of a package with another version, and of those that fit to it alone."""
    old = re.search(r"^Version: (.*)$", control, re.M)[1]
    return control.replace(f"(= {old})", f"(= {version})").replace(f"\nVersion: {old}\n", f"\nVersion: {version}\n")


def repacked(deb, version):
    """The package with another version, and its description."""
    files, control, packed = members(deb), "", io.BytesIO()
    (name,) = (name for name in files if name.startswith("control.tar"))
    with tarfile.open(fileobj=io.BytesIO(files[name])) as old, tarfile.open(fileobj=packed, mode="w:gz") as new:
        for entry in old:
            content = old.extractfile(entry).read() if entry.isfile() else b""
            if entry.name == "./control":
                control = changed(content.decode(), version)
                content = control.encode()
                entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))
    parts = {("control.tar.gz" if part == name else part): content for part, content in files.items()}
    parts["control.tar.gz"] = packed.getvalue()
    return archive(parts), control


def version_of(deb):
    done = subprocess.run(["dpkg-deb", "--field", str(deb), "Version"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


root, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
originals = root / "orig"
originals.mkdir(parents=True)
subprocess.run(["apt-get", "download", "--quiet", *names], cwd=originals, check=True, capture_output=True, timeout=240)
(root / "newer").mkdir()
versions, listing = {}, []
for deb in sorted(originals.glob("*.deb")):
    name, version = deb.name.partition("_")[0], version_of(deb)
    content, control = repacked(deb.read_bytes(), f"{version}+stead1")
    (root / "newer" / f"{name}.deb").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    listing.append(f"{control.strip()}\nFilename: ./{name}.deb\nSize: {len(content)}\nSHA256: {digest}\n")
    versions[name] = version
(root / "newer" / "Packages").write_text("\n".join(listing))
print(json.dumps(versions))
