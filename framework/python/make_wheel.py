"""Makes a wheel of the Python module around libtare.so and libtare_lite.so, with the system's libraries that these need
and without LibTorch.

Run: python make_wheel.py --library libtare.so --lite libtare_lite.so --version 0.1.0 --libtorch 2.15 --out FOLDER

Equal inputs make equal bytes. LibTorch comes from the package torch, an extra of the wheel.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
# What every system has that runs the wheels of torch, and what these bring.
OTHERS = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|lib(gomp|util|torch|c10|cud|cup|nv|shm))")


def system_libraries(library):
    """Returns the paths of the shared libraries that come into the wheel, by name."""
    text = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (\S+)", text, re.MULTILINE):
        if path == "not":
            raise SystemExit(f"make_wheel: {library} needs {name}, which is not found")
        if not OTHERS.match(name):
            found[name] = path
    return found


def licence_of(path):
    """Returns Debian's file of the copyright of a library, or None."""
    real = os.path.realpath(path)
    for name in (real, real.replace("/usr/lib/", "/lib/", 1)):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            package = found.stdout.split(":")[0]
            file = f"/usr/share/doc/{package}/copyright"
            return (package, file) if os.path.exists(file) else None
    return None


def stripped(library, folder, places):
    """Returns a copy of the library without symbols, which finds others in these places."""
    copy = os.path.join(folder, re.sub(r"\.so.*", ".so", os.path.basename(library)))
    shutil.copyfile(os.path.realpath(library), copy)
    subprocess.run(["strip", "--strip-unneeded", copy], check=True)
    script = os.path.join(folder, "rpath.cmake")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'file(RPATH_SET FILE "{copy}" NEW_RPATH "{places}")\n')
    subprocess.run(["cmake", "-P", script], check=True)
    return copy


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("library", "lite", "version", "libtorch", "out"):
        parser.add_argument("--" + name, required=True)
    given = parser.parse_args()
    information = f"tare-{given.version}.dist-info"
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    files = {}
    for path in sorted(glob.glob(os.path.join(HERE, "tare", "*.py"))):
        files["tare/" + os.path.basename(path)] = content_of(path)
    files["tare/_built.py"] = (f'"""What this wheel was built with."""\nLIBTORCH = "{given.libtorch}"\n').encode()
    with tempfile.TemporaryDirectory() as folder:
        beside = "\\$ORIGIN"  # in the script
        for library, places in ((given.library, f"{beside}:{beside}/../torch/lib"), (given.lite, beside)):
            copy = stripped(library, folder, places)
            files["tare/" + os.path.basename(copy)] = content_of(copy)
    libraries = {**system_libraries(given.library), **system_libraries(given.lite)}
    for name, path in sorted(libraries.items()):
        files["tare/" + name] = content_of(path)
        licence = licence_of(path)
        if licence:
            files[f"{information}/licenses/{licence[0]}"] = content_of(licence[1])
    files[f"{information}/licenses/tare"] = content_of(os.path.join(HERE, "../../LICENSE"))
    files[f"{information}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: tare\nVersion: {given.version}\n"
        "Summary: Predictions by the bundles of Tare\nRequires-Python: >=3.8\n"
        f"Provides-Extra: torch\nRequires-Dist: torch (=={given.libtorch}.*) ; extra == 'torch'\n").encode()
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tare\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{information}/RECORD"] = (record + f"{information}/RECORD,,\n").encode()
    os.makedirs(given.out, exist_ok=True)
    wheel = os.path.join(given.out, f"tare-{given.version}-{tag}.whl")
    with zipfile.ZipFile(wheel + ".partial", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    os.replace(wheel + ".partial", wheel)
    print(wheel)


if __name__ == "__main__":
    main()
