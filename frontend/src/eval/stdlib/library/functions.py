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
