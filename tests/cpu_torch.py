"""Makes torch work on a CPU without the 4 GB of CUDA libraries that its Linux wheel requires:
`python tests/cpu_torch.py SITE_PACKAGES`.

For tests only. torch must be installed without its dependencies. Its libraries link to those of
CUDA, but on a CPU they call only the device query. Empty libraries replace the CUDA libraries: each
defines the symbols that torch imports from it, as functions that return "no device". Needs readelf
and cc.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

#: cudaErrorNoDevice
NO_DEVICE = 100
LIBRARY = r"lib(?:cu|nccl|nv)\S*"


def asked_for(path):
    """The CUDA libraries that a library links to, the version of each, and the imported symbols by
    version ('' without one)."""
    command = ["readelf", "-W", "-d", "-V", "--dyn-syms", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(rf"\(NEEDED\).*\[({LIBRARY})\]", text))
    versions = dict(re.findall(rf"File: ({LIBRARY})\s+Cnt.*\n.*Name: (\S+)", text))
    return needed, versions, re.findall(r" UND (\w+)(?:@([\w.]+))?", text)


def build(name, version, symbols, directory):
    """An empty library with these symbols."""
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "empty.c"), pathlib.Path(scratch, "versions")
        source.write_text("".join(f"int {s}(void) {{ return {NO_DEVICE}; }}\n" for s in sorted(symbols)))
        command = ["cc", "-shared", "-fPIC", "-nostdlib", "-w", "-fno-builtin", f"-Wl,-soname,{name}", "-o", str(directory / name)]
        if version and symbols:
            script.write_text(f"{version} {{ global: {'; '.join(sorted(symbols))}; }};\n")
            command.append(f"-Wl,--version-script={script}")
        subprocess.run([*command, str(source)], check=True)


def main():
    directory = pathlib.Path(sys.argv[1]) / "torch" / "lib"
    present = {p.name for p in directory.iterdir()}
    libraries, of_version, plain = {}, {}, set()
    for path in directory.glob("*.so*"):
        needed, versions, symbols = asked_for(path)
        for name in needed - present:
            libraries.setdefault(name, versions.get(name, ""))
        for name, version in versions.items():
            libraries[name] = version
        for symbol, version in symbols:
            if version:
                of_version.setdefault(version, set()).add(symbol)
            elif re.match(r"nccl|nvshmem|cu[A-Z]|cuda|cusparseLt", symbol):
                plain.add(symbol)
    for name, version in sorted(libraries.items()):
        build(name, version, of_version.get(version, set()) if version else plain, directory)
    print(f"{len(libraries)} empty libraries in the place of CUDA's")


if __name__ == "__main__":
    main()
