"""Configuration of the official compiler: `nki.compiler.CompileConfig` and related classes.

Most of these options concern the backend, which the simulator does not have. They are stored so
that the configurations of nested kernels can be compared.
"""

import dataclasses

from . import _native


class _Members(type):
    """A metaclass for classes in which every name is a member: the public documentation does not
    list the members."""

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        member = object.__new__(cls)
        member.name = name
        _native.register(member, f"nki.compiler.AddressRotation.{name}")
        setattr(cls, name, member)
        return member


class AddressRotation(metaclass=_Members):
    """How the buffers of a loop rotate through addresses."""

    def __repr__(self):
        return f"AddressRotation.{self.name}"


def _values(config):
    """The options of a configuration, in order."""
    return tuple(getattr(config, field.name) for field in dataclasses.fields(config))


@dataclasses.dataclass(frozen=True)
class CompileConfig:
    """Options of the compiler. None leaves the choice to the compiler."""

    address_rotation: "AddressRotation | None" = None
    non_ssa_legalization: "bool | None" = None
    dead_code_elim: "bool | None" = None
    barrier_check: "bool | None" = None
    prefetch_auto: "bool | None" = False
    nki_alloc_fallback: "bool | None" = True

    def __nki_arguments__(self):
        return _values(self)


@dataclasses.dataclass(frozen=True)
class SpecializationConfig:
    """Options of specialisation.

    :param allow_nested_config_override: whether a nested kernel with a different `CompileConfig` is
        a warning rather than an error.
    """

    allow_nested_config_override: bool = False

    def __nki_arguments__(self):
        return _values(self)


for _class in (AddressRotation, CompileConfig, SpecializationConfig):
    _native.register(_class, f"nki.compiler.{_class.__name__}")
