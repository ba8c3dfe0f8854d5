"""`neuronxcc.nki.kernels`: the kernels of the SDK, which are not part of this package."""

raise ModuleNotFoundError(
    "neuronxcc.nki.kernels is not part of nki-sim: its kernels are public in the history of the repository aws-neuron/nki-samples "
    "(src/nki_samples/reference, until pull request 116); copy the file of the kernel and import it from there",
    name=__name__,
)
