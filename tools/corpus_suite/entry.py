"""Runs an entry of the corpus with the method for its kind."""

import pathlib

from . import beta1, kernel_file, klr, library, live, own, references


def needs(one: dict, sources: pathlib.Path) -> list[str]:
    """The Python packages that this entry needs."""
    if not (sources / one["repo"]).is_dir():
        return []
    if one["api"] == "Beta1":
        return beta1.needs(one)
    if one["repo"] == "nki-library" or library.revision(one, sources):
        return library.NEEDS
    if one["repo"] == "KLR":
        return klr.NEEDS
    if not references.known(one):
        return own.NEEDS
    return live.NEEDS if live.is_for(sources / one["file"]) else kernel_file.NEEDS


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Returns the status (passed, failed or skipped) and its reason."""
    if one["api"] == "Beta1":
        return beta1.run(one, sources, timeout)
    if not (sources / one["repo"]).is_dir():
        return "skipped", f"there is no checkout {one['repo']} among the sources"
    if not (sources / one["file"]).is_file():
        return "failed", f"the checkout has no file {one['file']}"
    if one["repo"] == "nki-library":
        return library.run(one, sources, timeout)
    if one["repo"] == "KLR":
        return klr.run(one, sources, timeout)
    if library.revision(one, sources):
        return library.run_revision(one, sources, timeout)
    if not references.known(one):
        return own.run(one, sources, timeout)
    if live.is_for(sources / one["file"]):
        return live.run(one, sources, timeout)
    return kernel_file.run(one, sources, timeout)
