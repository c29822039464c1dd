"""libtare.so, or libtare_lite.so where there is no LibTorch, by ctypes."""
import ctypes
import importlib.util
import json
import os

from ._built import LIBTORCH

_PyCapsule_New = ctypes.pythonapi.PyCapsule_New
_PyCapsule_New.restype = ctypes.py_object
_PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_PyCapsule_GetPointer = ctypes.pythonapi.PyCapsule_GetPointer
_PyCapsule_GetPointer.restype = ctypes.c_void_p
_PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_PyCapsule_IsValid = ctypes.pythonapi.PyCapsule_IsValid
_PyCapsule_IsValid.restype = ctypes.c_int
_PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_PyCapsule_Pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))

_VERSIONED = b"dltensor_versioned"
_PLAIN = b"dltensor"


class Error(RuntimeError):
    """A failure of the library. `code`: 1 failed, 3 out of memory, 4 I/O."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class InputError(Error, ValueError):
    """An argument, a shape or a file that is not as it must be. `code`: 2."""


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _Managed(ctypes.Structure):
    _fields_ = [("version", _Version), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("device", ctypes.c_char_p)]


def _libtorch_folder():
    """Returns the folder of libtorch_cpu.so: that of TARE_LIBTORCH, else that of the package torch."""
    chosen = os.environ.get("TARE_LIBTORCH")
    if chosen:
        return os.path.join(chosen, "lib")
    found = importlib.util.find_spec("torch")  # does not import it
    if found and found.origin:
        return os.path.join(os.path.dirname(found.origin), "lib")
    return None


def _choose_engine(folder):
    """Returns "libtorch" or "lite": what TARE_ENGINE says, else LibTorch where it is. `folder`: of libtorch_cpu.so."""
    chosen = os.environ.get("TARE_ENGINE", "auto")
    if chosen not in ("auto", "lite", "libtorch"):
        raise ImportError(f"TARE_ENGINE is '{chosen}'; allowed: auto, lite, libtorch")
    if chosen == "lite":
        return "lite"
    if folder is not None and os.path.exists(os.path.join(folder, "libtorch_cpu.so")):
        return "libtorch"
    if chosen == "libtorch" or os.environ.get("TARE_LIBTORCH"):
        raise ImportError(f"tare needs LibTorch {LIBTORCH}: install the package torch=={LIBTORCH}.*, or set "
                          "TARE_LIBTORCH to the folder that holds lib/libtorch_cpu.so"
                          + (f"; there is none in {folder}" if folder else ""))
    return "lite"


def _open_library():
    """Returns the library and its engine."""
    here = os.path.dirname(os.path.abspath(__file__))
    folder = _libtorch_folder()
    engine = _choose_engine(folder)
    try:
        if engine == "libtorch":
            ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))  # which libtare.so then finds by its name
        library = ctypes.CDLL(os.path.join(here, "libtare.so" if engine == "libtorch" else "libtare_lite.so"))
    except OSError as error:
        raise ImportError(f"tare cannot be loaded with the LibTorch in {folder}; it was built with {LIBTORCH}: "
                          f"{error}" if engine == "libtorch" else f"tare cannot be loaded: {error}") from error
    for name, result, arguments in (
            ("tare_abi_version", ctypes.c_uint32, []),
            ("tare_version", ctypes.c_char_p, []),
            ("tare_last_error", ctypes.c_char_p, []),
            ("tare_open", ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(ctypes.c_void_p)]),
            ("tare_close", None, [ctypes.c_void_p]),
            ("tare_info", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]),
            ("tare_predict", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(_Tensor)), ctypes.c_size_t,
                                            ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t,
                                            ctypes.POINTER(ctypes.c_size_t)]),
            ("tare_predict_json", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
            ("tare_read_picture", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
            ("tare_decode_picture", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                                   ctypes.POINTER(ctypes.c_void_p)]),
            ("tare_describe", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.c_int64,
                                             ctypes.POINTER(ctypes.c_void_p)]),
            ("tare_release", None, [ctypes.c_void_p]),
            ("tare_free", None, [ctypes.c_void_p])):
        if engine == "lite" and name == "tare_predict_json":
            continue
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    if library.tare_abi_version() != 1:
        raise ImportError(f"the library has the interface {library.tare_abi_version()}, and this module needs 1")
    return library, engine


_library, ENGINE = _open_library()


def version():
    """Returns the versions of Tare and LibTorch, as "tare 0.1.0, LibTorch 2.15.0", or "tare 0.1.0, without LibTorch"."""
    return _library.tare_version().decode()


def _check(code):
    if code != 0:
        text = _library.tare_last_error().decode(errors="replace") or "an unknown failure"
        if text.startswith("[lite]"):
            text += f"; with the package torch=={LIBTORCH}.* every bundle can be predicted from"
        raise (InputError if code == 2 else Error)(text, code)


def _text(pointer):
    """Returns a text that the library has returned, and frees it."""
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        _library.tare_free(pointer)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _free_unused(capsule):
    """Ends a capsule: a consumer has renamed it, and frees its tensor itself."""
    if _PyCapsule_IsValid(capsule, _VERSIONED):
        _library.tare_release(_PyCapsule_Pointer(capsule, _VERSIONED))


class Tensor:
    """A result of the library, float32 or uint8 on the host, whose memory it owns. numpy.asarray() takes it without a
    copy, torch.from_dlpack() and other libraries of DLPack 1 too, once; tolist() reads it."""

    def __init__(self, pointer):
        self._pointer = pointer
        self._is_shared = False  # with an array

    def __del__(self):
        if self._pointer:
            _library.tare_release(self._pointer)

    def _tensor(self):
        if not self._pointer:
            raise Error("the tensor has been handed to another library by DLPack", 1)
        return ctypes.cast(self._pointer, ctypes.POINTER(_Managed)).contents.tensor

    @property
    def shape(self):
        """Returns the sizes, the number of samples first."""
        tensor = self._tensor()
        return tuple(tensor.shape[i] for i in range(tensor.ndim))

    def tolist(self):
        """Returns the numbers as lists in lists."""
        tensor, shape = self._tensor(), self.shape
        count = 1
        for size in shape:
            count *= size
        kind = ctypes.c_float if tensor.dtype.code == 2 else ctypes.c_uint8
        numbers = list((kind * count).from_address(tensor.data)) if count else []
        for size in reversed(shape[1:]):
            numbers = [numbers[i:i + size] for i in range(0, len(numbers), max(size, 1))]
        return numbers

    @property
    def __array_interface__(self):
        tensor = self._tensor()
        self._is_shared = True
        return {"version": 3, "shape": self.shape, "typestr": "<f4" if tensor.dtype.code == 2 else "|u1",
                "data": (tensor.data or 0, False)}

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is None or max_version[0] < 1:
            raise BufferError("tare gives tensors of DLPack 1, which this library does not take")
        if copy or dl_device not in (None, (1, 0)):
            raise BufferError("tare gives tensors on the host without a copy")
        self._tensor()
        if self._is_shared:
            raise BufferError("the memory belongs to an array already: hand that over")
        capsule = _PyCapsule_New(self._pointer, _VERSIONED, ctypes.cast(_free_unused, ctypes.c_void_p))
        self._pointer = None
        return capsule


class _Given:
    """Holds an array of the caller, and a view of it for the library."""

    _KINDS = {"f": (2, 32), "d": (2, 64), "B": (1, 8), "i": (0, 32), "l": (0, 64), "q": (0, 64), "?": (6, 8)}

    def __init__(self, array):
        if isinstance(array, Tensor):
            self._keep, self.tensor = array, array._tensor()
        elif hasattr(array, "__dlpack__"):
            self._of_dlpack(array)
        else:
            self._of_buffer(array)

    def _of_dlpack(self, array):
        try:
            self._keep = array.__dlpack__(max_version=(1, 3))
        except TypeError:  # a library of before DLPack 1
            self._keep = array.__dlpack__()
        for name, kind in ((_VERSIONED, _Managed), (_PLAIN, _Tensor)):
            if _PyCapsule_IsValid(id(self._keep), name):
                pointer = _PyCapsule_GetPointer(self._keep, name)
                found = ctypes.cast(pointer, ctypes.POINTER(kind)).contents
                if kind is _Managed and found.version.major != 1:
                    break
                self.tensor = found.tensor if kind is _Managed else found
                return
        raise InputError("the object gives no DLPack tensor of version 1", 2)

    def _of_buffer(self, array):
        try:
            view = memoryview(array)
        except TypeError:
            raise InputError(f"an input must be an array with DLPack or a buffer, such as of numpy, got "
                             f"{type(array).__name__}", 2) from None
        if view.format not in self._KINDS:
            raise InputError(f"an input has the format '{view.format}'; allowed: float32, float64, uint8, int32, "
                             "int64, bool", 2)
        if not view.c_contiguous:
            raise InputError("an input must be contiguous", 2)
        # A read-only buffer has no address for ctypes: its bytes are copied.
        self._keep = (ctypes.c_char * view.nbytes)
        self._keep = self._keep.from_buffer_copy(view) if view.readonly else self._keep.from_buffer(view)
        self._shape = (ctypes.c_int64 * view.ndim)(*view.shape)
        self.tensor = _Tensor(data=ctypes.addressof(self._keep), device=_Device(1, 0), ndim=view.ndim,
                              dtype=_DataType(*self._KINDS[view.format], 1), shape=self._shape, strides=None,
                              byte_offset=0)


def _as_numpy(tensor):
    """Returns the tensor as an array of numpy where that is installed, else as it is."""
    try:
        import numpy
    except ImportError:
        return tensor
    return numpy.asarray(tensor)


class Model:
    """A bundle that is open for predictions; see load(). Several threads may use it, one after the other."""

    def __init__(self, path, device, threads):
        self._handle = None
        handle = ctypes.c_void_p()
        options = _Options(ctypes.sizeof(_Options), threads, device.encode())
        _check(_library.tare_open(os.fsencode(path), ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle

    def _open(self):
        if not self._handle:
            raise Error("the model is closed", 1)
        return self._handle

    def close(self):
        """Closes the model; every later call raises Error."""
        handle, self._handle = self._handle, None
        if handle:
            _library.tare_close(handle)

    def __del__(self):
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def info(self):
        """Returns what the bundle says of itself, as `tare inspect --json` does: a dict."""
        text = ctypes.c_char_p()
        _check(_library.tare_info(self._open(), ctypes.byref(text)))
        return json.loads(text.value)

    def __call__(self, *inputs):
        """Predicts a batch: an array [batch, ...] for each input of the model. Returns the outputs behind the
        activation, float32 [batch, ...]: an array of numpy where it is installed, else a Tensor; a tuple for a model of
        several."""
        given = [_Given(array) for array in inputs]
        pointers = (ctypes.POINTER(_Tensor) * len(given))(*[ctypes.pointer(one.tensor) for one in given])
        outputs = (ctypes.c_void_p * 64)()
        made = ctypes.c_size_t()
        _check(_library.tare_predict(self._open(), pointers, len(given), outputs, 64, ctypes.byref(made)))
        results = tuple(_as_numpy(Tensor(outputs[i])) for i in range(made.value))
        return results[0] if len(results) == 1 else results

    def predict(self, samples, top=None):
        """Predicts samples as JSON has them: dicts of the columns of a table, texts, lists of numbers. Returns a dict
        for each: {"predictions": [{"label", "index", "probability"}]} or {"shape", "values"}."""
        if ENGINE == "lite":
            raise Error(f"samples as JSON need LibTorch: install the package torch=={LIBTORCH}.*, or give arrays", 1)
        request = {"samples": list(samples)}
        if top is not None:
            request["top"] = top
        response = ctypes.c_void_p()
        _check(_library.tare_predict_json(self._open(), json.dumps(request).encode(), ctypes.byref(response)))
        return json.loads(_text(response))["samples"]

    def picture(self, file):
        """Reads a picture, by its path or its bytes, as an input: uint8 [1, channels, height, width]."""
        picture = ctypes.c_void_p()
        if isinstance(file, (bytes, bytearray)):
            _check(_library.tare_decode_picture(self._open(), bytes(file), len(file), ctypes.byref(picture)))
        else:
            _check(_library.tare_read_picture(self._open(), os.fsencode(file), ctypes.byref(picture)))
        return _as_numpy(Tensor(picture.value))

    def classify(self, file, top=1):
        """Returns the `top` most probable classes of a picture: dicts of label, index and probability."""
        output = self(self.picture(file))
        json_text = ctypes.c_void_p()
        given = _Given(output)
        _check(_library.tare_describe(self._open(), ctypes.byref(given.tensor), top, ctypes.byref(json_text)))
        described = json.loads(_text(json_text))[0]
        if "predictions" not in described:
            raise InputError("the model gives values and no classes: call the model itself", 2)
        return described["predictions"]


def load(path, device="cpu", threads=1):
    """Opens a bundle and verifies all of it. `device`: "cpu", "cuda" or "cuda:N". `threads`: of one operator on the
    host. Raises InputError for a file that is no bundle or is damaged, Error for one that cannot be read."""
    return Model(path, device, threads)
