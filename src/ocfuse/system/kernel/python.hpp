// What the kernels need of Python: arrays in, arrays out, and errors. By hand and by the buffer
// protocol: pybind11 takes longer to compile than the kernels. Nothing beyond the limited API of
// Python 3.11, so that one build serves all later versions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <type_traits>

namespace ocfuse {
namespace python {

// Python has been told what is wrong.
struct Raised {};

[[noreturn]] inline void raise(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  throw Raised{};
}

inline void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

// A reference that is given back.
class Object {
 public:
  explicit Object(PyObject* owned) : object_(owned) {
    if (object_ == nullptr) throw Raised{};
  }
  ~Object() { Py_DECREF(object_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// lock.hpp: in a thread that the end of the program overtakes this does not return.
void take_lock(PyThreadState* state);

// Other threads of Python may run.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { take_lock(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// A type of numbers: how NumPy writes it, and its dtype once it was asked for.
struct Dtype {
  char kind;  // b, i or f
  char size;
  PyObject* object;
};

template <class T>
Dtype& dtype() {
  static Dtype of{std::is_same<T, bool>::value     ? 'b'
                  : std::is_floating_point<T>::value ? 'f'
                                                     : 'i',
                  static_cast<char>(sizeof(T)), nullptr};
  return of;
}

inline PyObject* numpy_function(const char* name) {
  const Object numpy(PyImport_ImportModule("numpy"));
  return PyObject_GetAttrString(numpy.get(), name);
}

inline PyObject* dtype_object(Dtype& type) {
  if (type.object == nullptr) {
    const char name[] = {type.kind, static_cast<char>('0' + type.size), '\0'};
    const Object function(numpy_function("dtype"));
    type.object = PyObject_CallFunction(function.get(), "s", name);
    if (type.object == nullptr) throw Raised{};
  }
  return type.object;
}

// The memory of an array, all rows behind each other unless asked otherwise.
class Memory {
 public:
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int ndim() const { return view_.ndim; }
  std::int64_t shape(int axis) const { return view_.shape[axis]; }
  const Py_ssize_t* shape() const { return view_.shape; }
  std::int64_t stride(int axis) const { return view_.strides[axis]; }
  std::int64_t size() const { return view_.len / view_.itemsize; }

 protected:
  Memory() { view_.obj = nullptr; }
  ~Memory() { PyBuffer_Release(&view_); }

  // Return whether the object is an array of this type.
  bool take(PyObject* object, const Dtype& type, int flags) {
    if (PyObject_GetBuffer(object, &view_, flags | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      view_.obj = nullptr;
      return false;
    }
    if (is_of(type)) return true;
    PyBuffer_Release(&view_);
    return false;
  }

  // Take an array as it is, or a copy if it has another order or a narrower type.
  void take_or_convert(PyObject* given, Dtype& type, int flags) {
    if (take(given, type, flags)) return;
    const Object function(numpy_function("asarray"));
    const Object array(PyObject_CallFunctionObjArgs(function.get(), given, nullptr));
    const Object copy(PyObject_CallMethod(array.get(), "astype", "Oss", dtype_object(type), "C",
                                          "safe"));
    if (!take(copy.get(), type, flags)) raise(PyExc_TypeError, "not an array of numbers");
  }

  Py_buffer view_;

 private:
  bool is_of(const Dtype& type) const {
    const char* letters = type.kind == 'f' ? "fd" : type.kind == 'b' ? "?" : "bhilq";
    const char* format = view_.format;
    return view_.itemsize == type.size && format[0] != '\0' && format[1] == '\0' &&
           std::strchr(letters, format[0]) != nullptr &&
           reinterpret_cast<std::uintptr_t>(view_.buf) % static_cast<unsigned>(type.size) == 0;
  }
};

template <class T>
class Input : public Memory {
 public:
  explicit Input(PyObject* given, int flags = PyBUF_C_CONTIGUOUS) {
    take_or_convert(given, dtype<T>(), flags);
  }
  const T* data() const { return static_cast<const T*>(view_.buf); }
};

// An array that is changed in place, and hence not converted.
template <class T>
class InPlace : public Memory {
 public:
  explicit InPlace(PyObject* given) {
    if (!take(given, dtype<T>(), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
      raise(PyExc_TypeError, "not an array of this type, in C order, that may be changed");
  }
  T* data() { return static_cast<T*>(view_.buf); }
};

template <class Length>
PyObject* empty(const Length* shape, int ndim, Dtype& type) {
  static PyObject* function = nullptr;
  if (function == nullptr) function = numpy_function("empty");
  if (function == nullptr) throw Raised{};
  const Object lengths(PyTuple_New(ndim));
  for (int axis = 0; axis < ndim; ++axis) {
    PyObject* length = PyLong_FromLongLong(shape[axis]);
    if (length == nullptr) throw Raised{};
    if (PyTuple_SetItem(lengths.get(), axis, length) != 0) throw Raised{};
  }
  return PyObject_CallFunctionObjArgs(function, lengths.get(), dtype_object(type), nullptr);
}

// A new array, not filled.
template <class T>
class Output : public Memory {
 public:
  template <class Length>
  Output(const Length* shape, int ndim) : array_(empty(shape, ndim, dtype<T>())) {
    if (!take(array_.get(), dtype<T>(), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
      raise(PyExc_SystemError, "NumPy gave another array");
  }
  template <std::size_t ndim>
  explicit Output(const std::int64_t (&shape)[ndim]) : Output(shape, static_cast<int>(ndim)) {}

  T* data() { return static_cast<T*>(view_.buf); }
  PyObject* get() const { return array_.get(); }
  PyObject* release() {
    Py_INCREF(array_.get());
    return array_.get();
  }

 private:
  Object array_;
};

// New references to arrays, as a tuple.
template <class... Arrays>
PyObject* tuple(const Arrays&... arrays) {
  return PyTuple_Pack(sizeof...(arrays), arrays.get()...);
}

// What a function was called with.
class Arguments {
 public:
  Arguments(PyObject* const* given, Py_ssize_t n) : given_(given), n_(n) {}

  void require_count(Py_ssize_t expected) const {
    if (n_ == expected) return;
    PyErr_Format(PyExc_TypeError, "%zd arguments expected, %zd given", expected, n_);
    throw Raised{};
  }
  PyObject* operator[](int i) const { return given_[i]; }
  bool flag(int i) const {
    const int found = PyObject_IsTrue(given_[i]);
    if (found < 0) throw Raised{};
    return found != 0;
  }
  double number(int i) const {
    const double found = PyFloat_AsDouble(given_[i]);
    if (found == -1.0 && PyErr_Occurred()) throw Raised{};
    return found;
  }
  std::int64_t whole(int i) const {
    const long long found = PyLong_AsLongLong(given_[i]);
    if (found == -1 && PyErr_Occurred()) throw Raised{};
    return found;
  }
  int small(int i) const {
    const std::int64_t found = whole(i);
    if (found != static_cast<int>(found)) raise(PyExc_OverflowError, "the number is too large");
    return static_cast<int>(found);
  }

 private:
  PyObject* const* given_;
  Py_ssize_t n_;
};

// The objects of a sequence, such as the arrays of a pair.
class Parts {
 public:
  Parts(PyObject* given, Py_ssize_t n) : tuple_(PySequence_Tuple(given)) {
    Arguments(nullptr, PyTuple_Size(tuple_.get())).require_count(n);
  }
  PyObject* operator[](int i) const { return PyTuple_GetItem(tuple_.get(), i); }

 private:
  Object tuple_;
};

// The function that a type has for this, such as to allocate its objects.
template <class Function>
Function slot(PyTypeObject* type, int name) {
  return reinterpret_cast<Function>(PyType_GetSlot(type, name));
}

// Tell Python of the exception that is handled.
inline PyObject* tell() {
  try {
    throw;
  } catch (const Raised&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::logic_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// A function of Python that calls function(self, arguments), of which there are n.
template <class Self, PyObject* (*function)(Self&, const Arguments&), int n>
PyObject* called(PyObject* self, PyObject* const* given, Py_ssize_t n_given) {
  try {
    const Arguments arguments(given, n_given);
    arguments.require_count(n);
    return function(*reinterpret_cast<Self*>(self), arguments);
  } catch (...) {
    return tell();
  }
}

template <class Self, PyObject* (*function)(Self&, const Arguments&), int n>
PyMethodDef method(const char* name, const char* about) {
  // as Python asks for it: a function's flags say what it takes
  const auto plain = reinterpret_cast<void (*)()>(&called<Self, function, n>);
  return {name, reinterpret_cast<PyCFunction>(plain), METH_FASTCALL, about};
}

}  // namespace python
}  // namespace ocfuse
