"""Searches a grid with Optuna for Pareto-optimal points."""

import concurrent.futures
import hashlib
import itertools
import json
import math
import numbers
import os
import platform
import random
import time
import warnings

from . import _native

#: After this many suggestions of known points, an unknown point is drawn at random.
_PATIENCE = 8
#: The attribute of a trial that holds its row, and that of a study that holds what its rows depend
#: on.
_ROW, _KEY = "nki_sim_row", "nki_sim_key"
#: The attribute of a trial that holds the machine and the number of the process that runs it.
_PROCESS = "nki_sim_process"


class Search:
    """The budget and the method of a search: `nki_sim.sweep(..., search=Search(200, seconds=60))`.

    :param trials: configurations to time at most, those that a storage already has included.
    :param seconds: time after which no further configuration is begun.
    :param sampler: `tpe`, `random`, `nsga2` or `nsga3`, a sampler of Optuna each, or a
        sampler object.
    :param seed: seed of the sampler.
    :param prune: with `expect=`, first time each configuration without values, and compute values
        only if no correct configuration is as good in latency and peak SBUF.
    :param storage: URL of Optuna's storage, such as `sqlite:///search.db`; a later search with it
        continues.
    :param study: name of the study in the storage; by default that of the kernel's file.
    """

    def __init__(self, trials=None, *, seconds=None, sampler="tpe", seed=0, prune=True, storage=None, study=None):
        if trials is None and seconds is None:
            raise ValueError("a search needs a budget: trials, seconds or both")
        if trials is not None and (not isinstance(trials, numbers.Integral) or isinstance(trials, bool) or trials < 1):
            raise ValueError(f"trials={trials!r} is not a budget of a search: give an integer, 1 or more")
        if seconds is not None and (not isinstance(seconds, numbers.Real) or isinstance(seconds, bool) or not seconds > 0):
            raise ValueError(f"seconds={seconds!r} is not a budget of a search: give a number above 0")
        if study is not None and storage is None:
            raise ValueError(f"study={study!r} names a study in a storage, but storage= is missing")
        self.trials, self.seconds, self.sampler, self.seed = trials, seconds, sampler, seed
        self.prune, self.storage, self.study = prune, storage, study


def _optuna():
    try:
        import optuna
    except ImportError:
        raise ImportError("a search needs Optuna: pip install 'nki-sim[search]', or pip install optuna") from None
    return optuna


def _sampler(search):
    samplers = _optuna().samplers
    known = {
        "tpe": lambda: samplers.TPESampler(seed=search.seed, constant_liar=True),
        "random": lambda: samplers.RandomSampler(seed=search.seed),
        "nsga2": lambda: samplers.NSGAIISampler(seed=search.seed),
        "nsga3": lambda: samplers.NSGAIIISampler(seed=search.seed),
    }
    if not isinstance(search.sampler, str):
        return search.sampler
    if search.sampler not in known:
        raise ValueError(f"`{search.sampler}` is not a sampler; the samplers are {', '.join(known)}")
    with warnings.catch_warnings():
        # Some samplers, or options of them, are experimental in Optuna.
        warnings.simplefilter("ignore", _optuna().exceptions.ExperimentalWarning)
        return known[search.sampler]()


def searched(search, job, space, run, progress):
    """The rows of a search over a space of values in text form, computed on workers."""
    if not isinstance(search, Search):
        search = Search(search)
    return _Searching(search, job, space, run, progress).rows()


class _Searching:
    def __init__(self, search, job, space, run, progress):
        optuna = _optuna()
        self.search, self.job, self.space, self.run, self.progress = search, job, space, run, progress
        self.compares = "expect" in job
        self.size = math.prod(len(values) for values in space.values())
        self.budget = min(search.trials or self.size, self.size)
        self.known = {}
        self.random = random.Random(search.seed)
        # Suppress Optuna's message about a new study.
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = _sampler(search)
        try:
            self.study = optuna.create_study(
                storage=search.storage,
                study_name=search.study or os.path.basename(job["file"]),
                sampler=sampler,
                directions=["minimize"] * (3 if self.compares else 2),
                load_if_exists=True,
            )
        # Each storage backend raises its own exceptions.
        except Exception as e:
            if search.storage is None:
                raise
            why = (str(e).splitlines() or [type(e).__name__])[0]
            raise StorageError(f"storage {search.storage}: {why}; give a URL such as sqlite:///search.db") from e
        finally:
            optuna.logging.set_verbosity(verbosity)
        self.states = optuna.trial.TrialState
        self._resume()

    def rows(self):
        """Searches until the budget is spent; returns the rows of all configurations."""
        ends = None if self.search.seconds is None else time.monotonic() + self.search.seconds
        running = {}
        try:
            while True:
                over = ends is not None and time.monotonic() >= ends
                while not over and len(running) < 2 * self.run.count and len(self.known) + len(running) < self.budget:
                    trial, point = self._ask({p for _, p in running.values()})
                    running[self._begin(point)] = trial, point
                    over = ends is not None and time.monotonic() >= ends
                if not running:
                    # The result must not depend on the order in which workers finish.
                    return [self.known[point] for point in sorted(self.known, key=self._place)]
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    trial, point = running.pop(future)
                    self._finish(future.result(), trial, point, running)
        finally:
            for future in running:
                future.cancel()

    def _place(self, point):
        return [self.space[name].index(value) for name, value in point]

    def _begin(self, point):
        job = {**self.job, "point": dict(point)}
        if self.compares and self.search.prune:
            job = {k: v for k, v in job.items() if k not in ("expect", "rtol", "atol")} | {"no_numerics": True}
        return self.run.submit(job)

    def _finish(self, row, trial, point, running):
        """Reports the result of a configuration to the study, or starts its second pass."""
        if isinstance(trial, _Second):
            trial = trial.trial
        elif self.compares and self.search.prune and _feasible(row):
            if not self._is_beaten(row):
                # The pass without values was promising: run again with values.
                job = {**self.job, "point": dict(point)}
                running[self.run.submit(job)] = _Second(trial), point
                return
            row["pruned"] = True
        self.known[point] = row
        row["stamps"] = {path: stamp(path) for path in row.get("sources", []) if path != self.job["file"]}
        trial.set_user_attr(_ROW, json.dumps(row))
        if _feasible(row) and not row.get("pruned") and (not self.compares or _is_correct(row)):
            values = [row["latency_us"], row["sbuf_peak_bytes_per_partition"]]
            if self.compares:
                values.append(_error(row))
            self.study.tell(trial, values)
        else:
            # Reports to the sampler only that the configuration is bad.
            self.study.tell(trial, state=self.states.PRUNED)
        if self.progress is not None:
            self.progress(len(self.known), self.budget)

    def _ask(self, running):
        """A trial of an unknown configuration."""
        for _ in range(_PATIENCE):
            trial = self.study.ask()
            point = self._suggested(trial)
            if point not in self.known and point not in running:
                return trial, point
            self.study.tell(trial, state=self.states.FAIL)
        point = self._unknown(running)
        self.study.enqueue_trial(dict(point))
        trial = self.study.ask()
        return trial, self._suggested(trial)

    def _suggested(self, trial):
        if self.search.storage is not None:
            trial.set_user_attr(_PROCESS, [platform.node(), os.getpid()])
        return tuple((name, trial.suggest_categorical(name, values)) for name, values in self.space.items())

    def _unknown(self, running):
        """A random configuration that is not known yet."""
        for _ in range(1000):
            point = tuple((name, self.random.choice(values)) for name, values in self.space.items())
            if point not in self.known and point not in running:
                return point
        every = itertools.product(*([(name, value) for value in values] for name, values in self.space.items()))
        return next(point for point in every if point not in self.known and point not in running)

    def _is_beaten(self, row):
        """Whether a correct configuration is at least as good in both latency and SBUF."""
        mine = row["latency_us"], row["sbuf_peak_bytes_per_partition"]
        return any(
            other["latency_us"] <= mine[0] and other["sbuf_peak_bytes_per_partition"] <= mine[1]
            for other in self.known.values()
            if _feasible(other) and not other.get("pruned") and _is_correct(other)
        )

    def _resume(self):
        """Takes over the configurations of an earlier search."""
        key = _key(self.job)
        known = self.study.user_attrs.get(_KEY)
        if known is None:
            self.study.set_user_attr(_KEY, key)
        elif known != key:
            raise ValueError(
                f"the study `{self.study.study_name}` in the storage belongs to another kernel, other arguments, options or environment variables, or another version of nki-sim; give another study name"
            )
        for trial in self.study.get_trials(deepcopy=False):
            self._check_values(trial)
            row = trial.user_attrs.get(_ROW)
            if row is not None:
                row = json.loads(row)
                values = dict(row["point"])
                if values.keys() == self.space.keys() and _is_current(row):
                    self.known[tuple((name, values[name]) for name in self.space)] = row
            elif trial.state == self.states.RUNNING:
                if _is_running(trial.user_attrs.get(_PROCESS)):
                    raise ValueError(
                        f"process {trial.user_attrs[_PROCESS][1]} is searching in the study `{self.study.study_name}` of the storage: "
                        "wait for its end, or give another study name"
                    )
                # The process that ran it has died; otherwise it would have ended the trial.
                self.study.tell(trial.number, state=self.states.FAIL)


    def _check_values(self, trial):
        """Checks that the axes have the same values as in an earlier search: a sampler cannot learn
        from other values."""
        for name, known in trial.distributions.items():
            if name in self.space and list(known.choices) != self.space[name]:
                raise ValueError(
                    f"`{name}` has different values than in the study `{self.study.study_name}` of the storage, which has {', '.join(map(str, known.choices))}; "
                    "give these values in this order, or another study name"
                )


class StorageError(ValueError):
    """A storage that Optuna cannot open."""


def of_command(request):
    """The rows of `nki-sim sweep --search`; both are JSON. The native module calls it."""
    from ._sweep import workers

    request = json.loads(request)
    limits = {name: request[name] for name in ("trials", "seconds")}
    space = dict(request["space"])
    if limits == {"trials": None, "seconds": None}:
        raise ValueError("a search needs a budget: --trials, --seconds or both")
    search = Search(**limits, **{name: request[name] for name in ("sampler", "seed", "prune", "storage", "study")})
    job = request["job"]
    with open(job["file"], encoding="utf-8") as file:
        job["source"] = file.read()
    with workers(None, job, count=request["workers"]) as run:
        try:
            return json.dumps(searched(search, job, space, run, None))
        except StorageError as e:
            raise ValueError(f"--{e}") from e


class _Second:
    """A trial whose values are being computed."""

    def __init__(self, trial):
        self.trial = trial


def _is_running(process):
    """Whether another process of this machine, given as (machine, number), is running."""
    if process is None or process[0] != platform.node() or process[1] == os.getpid() or os.name != "posix":
        return False
    try:
        os.kill(process[1], 0)
    except OSError:
        return False
    return True


def _feasible(row):
    timed = row.get("latency_us") is not None and row.get("latency_valid", True)
    return timed and row.get("error") is None and not row.get("incomplete", False)


def _is_correct(row):
    return bool(row.get("expected")) and all(c["passed"] for c in row["expected"])


def _error(row):
    return max(c["max_abs_error"] for c in row["expected"])


#: Environment variables that decide about the result of a job.
_VARIABLES = (
    *("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "NEURON_LOGICAL_NC_CONFIG", "NKI_PRECISE_FP", "NKI_SIM_UNWRITTEN", "NKI_SIM_CAPACITY"),
    *("NKI_SIM_DENY", "NKI_SIM_WARN", "NKI_SIM_ALLOW"),
)


def _key(job):
    """A hash of what a study's rows depend on, except for the modules that the kernel imports."""
    from . import __version__

    parts = {name: value for name, value in job.items() if name not in ("file", "max_memory")}
    if "params" in job:
        parts["params"] = stamp(job["params"])
    for field in ("args", "expect"):
        # Hash the contents of arrays: the names of their files differ in each call.
        parts[field] = {name: _contents(value) for name, value in job.get(field, {}).items()}
    return hashlib.sha256(json.dumps([__version__, parts, _native.variables(*_VARIABLES)], sort_keys=True).encode()).hexdigest()


def _contents(value):
    path = value.split(".npy")[0] + ".npy" if isinstance(value, str) else ""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() + value[len(path) :]
    return value


def stamp(path):
    """The hash of a file; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _is_current(row):
    return all(stamp(path) == known for path, known in row.get("stamps", {}).items())
