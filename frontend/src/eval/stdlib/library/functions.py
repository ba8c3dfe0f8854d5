from dataclasses import fields, is_dataclass


def groupby(iterable, key=None):
    items = iter(iterable)
    end = object_of_its_own()
    state = {"item": next(items, end), "group": 0}

    def key_of(item):
        return item if key is None else key(item)

    def group(number, own):
        while state["group"] == number and state["item"] is not end:
            item = state["item"]
            if state["key"] != own:
                return
            yield item
            if state["group"] == number:
                advance()

    def advance():
        state["item"] = next(items, end)
        if state["item"] is not end:
            state["key"] = key_of(state["item"])

    if state["item"] is not end:
        state["key"] = key_of(state["item"])
    while state["item"] is not end:
        state["group"] += 1
        own = state["key"]
        yield own, group(state["group"], own)
        while state["item"] is not end and state["key"] == own:
            advance()


def batched(iterable, n, *, strict=False):
    if n < 1:
        raise ValueError("n must be at least one")
    items = iter(iterable)
    while True:
        batch = []
        for item in items:
            batch.append(item)
            if len(batch) == n:
                break
        if not batch:
            return
        if strict and len(batch) != n:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)


def _converted(x, of_fields):
    if is_dataclass(x) and not is_type(x):
        return of_fields([(field.name, _converted(getattr(x, field.name), of_fields)) for field in fields(x)])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_converted(item, of_fields) for item in x])
    if isinstance(x, (list, tuple)):
        return type(x)([_converted(item, of_fields) for item in x])
    if isinstance(x, dict):
        items = [(_converted(key, of_fields), _converted(value, of_fields)) for key, value in x.items()]
        return dict(items) if type(x) is dict else type(x)(items)
    return x


def asdict(obj, *, dict_factory=dict):
    if not is_dataclass(obj) or is_type(obj):
        raise TypeError("asdict() should be called on dataclass instances")
    return _converted(obj, dict_factory)


def astuple(obj, *, tuple_factory=tuple):
    if not is_dataclass(obj) or is_type(obj):
        raise TypeError("astuple() should be called on dataclass instances")
    return _converted(obj, lambda items: tuple_factory([value for _, value in items]))


def cmp_to_key(mycmp):
    class K:
        def __init__(self, obj):
            self.obj = obj

        def __lt__(self, other):
            return mycmp(self.obj, other.obj) < 0

        def __gt__(self, other):
            return mycmp(self.obj, other.obj) > 0

        def __le__(self, other):
            return mycmp(self.obj, other.obj) <= 0

        def __ge__(self, other):
            return mycmp(self.obj, other.obj) >= 0

        def __eq__(self, other):
            return mycmp(self.obj, other.obj) == 0

        __hash__ = None

    return K


def perm(n, k=None):
    total = 1
    for i in range(n if k is None else k):
        total *= n - i
    return total


def sumprod(p, q):
    return sum(a * b for a, b in zip(p, q, strict=True))


def compress(data, selectors):
    return (x for x, chosen in zip(data, selectors) if chosen)


class object_of_its_own:
    pass


def itemgetter(first, *others):
    def get(obj):
        return tuple(obj[i] for i in (first, *others)) if others else obj[first]

    return get


def attrgetter(first, *others):
    def one(obj, path):
        for name in path.split("."):
            obj = getattr(obj, name)
        return obj

    def get(obj):
        return tuple(one(obj, path) for path in (first, *others)) if others else one(obj, first)

    return get


def methodcaller(name, *args, **kwargs):
    def call(obj):
        return getattr(obj, name)(*args, **kwargs)

    return call


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        return None

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self._exceptions)


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *args):
        return None


class ExitStack:
    def __init__(self):
        self._exits = []

    def enter_context(self, context):
        value = enter_context(context)
        self._exits.append(lambda *error: exit_context(context, *error))
        return value

    def push(self, exit):
        if hasattr(exit, "__exit__"):
            self._exits.append(lambda *error: exit.__exit__(*error))
        else:
            self._exits.append(exit)
        return exit

    def callback(self, function, /, *args, **kwargs):
        def call(*error):
            function(*args, **kwargs)

        self._exits.append(call)
        return function

    def pop_all(self):
        other = type(self)()
        other._exits, self._exits = self._exits, []
        return other

    def close(self):
        self.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        given = error
        while self._exits:
            exit = self._exits.pop()
            try:
                if exit(None if error is None else type(error), error, None):
                    error = None
            except BaseException as new:
                error = new
        if error is not None and error is not given:
            raise error
        return given is not None and error is None


class singledispatch:
    def __init__(self, function):
        self._functions = [(object, function)]
        self.__name__ = getattr(function, "__name__", "")
        self.__wrapped__ = function

    def register(self, kind, function=None):
        if function is None:
            if not is_type(kind):
                kinds = types_of_first_parameter(kind)
                for one in kinds:
                    self.register(one, kind)
                return kind
            return lambda function: self.register(kind, function)
        self._functions = [(known, f) for known, f in self._functions if known is not kind] + [(kind, function)]
        return function

    def dispatch(self, kind):
        best, found = None, None
        for known, function in self._functions:
            if issubclass(kind, known) and (best is None or issubclass(known, best)):
                best, found = known, function
        return found

    def __call__(self, first, *args, **kwargs):
        best, found = None, None
        for known, function in self._functions:
            if isinstance(first, known) and (best is None or issubclass(known, best)):
                best, found = known, function
        return found(first, *args, **kwargs)
