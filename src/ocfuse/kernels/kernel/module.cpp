// The door between Python and the kernel: checks shapes and numbers, lets go of the
// interpreter, picks the instruction set.
#include "../../system/kernel/python.hpp"
#include "../../system/kernel/processor.hpp"

#include <algorithm>

#include "search.hpp"

namespace {

using namespace ocfuse::python;

bool has_avx2() {
#ifdef OCFUSE_HAS_AVX2_BUILD
  static const bool found = ocfuse::has_avx2_and_fma();
  return found;
#else
  return false;
#endif
}

bool force_baseline = false;

#ifdef OCFUSE_HAS_AVX2_BUILD
#define OCFUSE_RUN(call)                                               \
  do {                                                                 \
    if (!force_baseline && has_avx2()) ocfuse::avx2::call;             \
    else ocfuse::baseline::call;                                       \
  } while (false)
#else
#define OCFUSE_RUN(call) ocfuse::baseline::call
#endif

// Refuse numbers that are not in [0, n) and return the largest, or -1. Without a way
// out of the loop, so that it takes several numbers at a time.
template <class T>
T require_numbers(const Input<T>& numbers, std::int64_t n, const char* message) {
  const T* at = numbers.data();
  T low = 0, high = -1;
  for (std::int64_t i = 0; i < numbers.size(); ++i) {
    low = std::min(low, at[i]);
    high = std::max(high, at[i]);
  }
  require(low >= 0 && high < n, message);
  return high;
}

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

// Arrays of starts and numbers.
struct Members {
  explicit Members(PyObject* pair) : Members(Parts(pair, 2)) {}
  explicit Members(const Parts& parts) : starts(parts[0]), numbers(parts[1]) {}
  const Input<std::int64_t> starts, numbers;
};

// The tables and the answer of a search, their shapes checked. Without members every
// row stands for itself.
template <class T>
class Search {
 public:
  Search(const Input<T>& X, const Input<T>& Y, std::int64_t k)
      : squares_({rows(X, Y), k}), index_({X.shape(0), k}) {
    tables = {X.data(), Y.data(), X.shape(0), Y.shape(0), X.shape(1), nullptr, nullptr};
    answer = {squares_.data(), index_.data(), k};
  }

  void set_members(const Members& members) {
    const auto& [starts, numbers] = members;
    const std::int64_t* at = starts.data();
    require(starts.ndim() == 1 && numbers.ndim() == 1 && starts.size() == tables.n + 1 &&
                at[0] == 0 && at[tables.n] == numbers.size(),
            "there must be one start per row of Y, and the end");
    // A difference of numbers from a file could overflow, a comparison cannot.
    bool rising = true;
    for (std::int64_t i = 0; i < tables.n; ++i) rising &= at[i] < at[i + 1];
    require(rising, "every row must have a member");
    tables.starts = at, tables.numbers = numbers.data();
  }

  PyObject* result() const { return tuple(squares_, index_); }

  // The same, and which rows are crowded.
  PyObject* result(const Output<bool>& crowded) const {
    const Object found(result());
    return tuple(found, crowded);
  }

  ocfuse::Tables<T> tables;
  ocfuse::Nearest answer;

 private:
  static std::int64_t rows(const Input<T>& X, const Input<T>& Y) {
    require(X.ndim() == 2 && Y.ndim() == 2 && X.shape(1) == Y.shape(1),
            "X and Y must have two dimensions and the same columns");
    require(Y.shape(0) <= std::numeric_limits<std::int32_t>::max(), "too many rows");
    return X.shape(0);
  }

  Output<double> squares_;
  Output<std::int64_t> index_;
};

// The candidates of some rows, found from products in single precision.
struct Candidates {
  PyObject_HEAD
  ocfuse::Candidates<float>* found;
  std::int32_t largest;
};

PyObject* new_candidates(PyTypeObject* type, PyObject* given, PyObject* named) {
  try {
    if (named != nullptr && PyDict_Size(named) != 0)
      raise(PyExc_TypeError, "arguments have no names");
    const Parts parts(given, 5);
    PyObject* const each[] = {parts[0], parts[1], parts[2], parts[3], parts[4]};
    const Arguments arguments(each, 5);
    const Input<double> norms(arguments[0]);
    const std::int64_t k = arguments.whole(1), most = arguments.whole(2);
    const double c = arguments.number(3);
    require(norms.ndim() == 1 && k >= 1 && most >= k,
            "norms must have one dimension, 1 <= k <= most");
    require(c <= 0.01, "too many columns for single precision");
    const Object made(slot<allocfunc>(type, Py_tp_alloc)(type, 0));
    Candidates& self = *reinterpret_cast<Candidates*>(made.get());
    self.largest = -1;
    self.found = new ocfuse::Candidates<float>(count(norms.size()), count(k), count(most), c,
                                               arguments.number(4));
    std::copy_n(norms.data(), norms.size(), self.found->norms.begin());
    std::copy_n(norms.data(), norms.size(), self.found->shift.begin());
    Py_INCREF(made.get());
    return made.get();
  } catch (...) {
    return tell();
  }
}

void delete_candidates(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Candidates*>(self)->found;
  slot<freefunc>(type, Py_tp_free)(self);
  Py_DECREF(type);
}

PyObject* add(Candidates& self, const Arguments& given) {
  const Input<float> products(given[0], PyBUF_STRIDES);
  const Input<std::int32_t> rows(given[1]), columns(given[2]);
  const Input<float> row_squares(given[3]), column_squares(given[4]);
  const bool both = given.flag(5);
  require(products.ndim() == 2 && products.shape(0) == rows.size() &&
              products.shape(1) == columns.size() && column_squares.size() == columns.size() &&
              row_squares.size() == rows.size(),
          "products must have a row per row number and a column per column number");
  require(products.shape(1) < 2 || products.stride(1) == sizeof(float),
          "the rows of products must be contiguous");
  const std::int64_t n = static_cast<std::int64_t>(self.found->kept.size());
  require_numbers(rows, n, "a row number is too large");
  const std::int32_t largest =
      require_numbers(columns, both ? n : std::numeric_limits<std::int32_t>::max(),
                      "a column number is too large");
  for (std::int64_t j = 0; both && j < columns.size(); ++j)
    require(columns.data()[j] == columns.data()[0] + j, "columns must follow each other");
  self.largest = std::max(self.largest, largest);
  const ocfuse::Block<float> block{
      products.data(),   products.stride(0) / static_cast<std::int64_t>(sizeof(float)),
      products.shape(0), products.shape(1), rows.data(), columns.data()};
  {
    const Unlocked unlocked;
    OCFUSE_RUN(add_products(*self.found, block, row_squares.data(), column_squares.data(), both));
  }
  Py_RETURN_NONE;
}

// The answer, and which rows are crowded: what it says of them is nothing.
PyObject* nearest(Candidates& self, const Arguments& given) {
  const Input<double> X(given[0]), Y(given[1]);
  const Members members(given[2]);
  const std::int64_t k = given.whole(3);
  const int threads = given.small(4);
  ocfuse::Candidates<float>& found = *self.found;
  Search<double> search(X, Y, k);
  search.set_members(members);
  require(count(X.shape(0)) == found.kept.size(), "X must have a row per row of candidates");
  require(self.largest < Y.shape(0), "a candidate is no row of Y");
  const std::int64_t* starts = search.tables.starts;
  for (std::size_t i = 0; i < found.kept.size(); ++i) {
    std::int64_t size = 0;
    for (const auto& entry : found.kept[i]) size += starts[entry.row + 1] - starts[entry.row];
    require(found.crowded[i] || size >= k, "there are fewer candidates than neighbours");
  }
  {
    const Unlocked unlocked;
    OCFUSE_RUN(order(found, search.tables, search.answer, threads));
  }
  Output<bool> crowded({X.shape(0)});
  std::copy(found.crowded.begin(), found.crowded.end(), crowded.data());
  return search.result(crowded);
}

// The nearest rows, given rounded squared distances in double precision.
PyObject* nearest_by_matrix(PyObject&, const Arguments& given) {
  const Input<double> D(given[0]), norms(given[1]), X(given[3]), Y(given[4]);
  const double c = given.number(2);
  const std::int64_t k = given.whole(5);
  const int threads = given.small(6);
  Search<double> search(X, Y, k);
  require(D.ndim() == 2 && norms.ndim() == 1 && D.shape(0) == X.shape(0) &&
              D.shape(1) == Y.shape(0) && norms.size() == X.shape(0),
          "D must have a row per row of X and a column per row of Y, norms a number per row of X");
  require(k >= 1 && k <= Y.shape(0), "k must be in [1, number of rows of Y]");
  require(c <= 0.01, "there must not be too many columns");
  {
    const Unlocked unlocked;
    OCFUSE_RUN(nearest_by_matrix(D.data(), norms.data(), c, search.tables, search.answer, threads));
  }
  return search.result();
}

// Codes of rows, their scales and squared lengths, and the rows themselves.
template <class T>
struct CodedRows {
  explicit CodedRows(PyObject* four) : CodedRows(Parts(four, 4)) {}
  explicit CodedRows(const Parts& parts)
      : codes(parts[0]), scales(parts[1]), squares(parts[2]), rows(parts[3]) {}
  const Input<std::int16_t> codes;
  const Input<float> scales;
  const Input<T> squares;
  const Input<float> rows;
};

// The nearest of the rows in some ranges that products of codes say are near, and which
// rows are crowded: what it says of them is nothing.
PyObject* nearest_by_codes(PyObject&, const Arguments& given) {
  const CodedRows<double> x(given[0]);
  const CodedRows<float> y(given[1]);
  const Members members(given[2]);
  const Input<std::int64_t> ranges(given[3]);
  const std::int64_t k = given.whole(4), size = given.whole(5), most = given.whole(6);
  const int threads = given.small(7);
  const auto& [x_codes, x_scales, norms, X] = x;
  const auto& [y_codes, y_scales, squares, Y] = y;
  Search<float> search(X, Y, k);
  search.set_members(members);
  const std::int64_t q = X.shape(0), n = Y.shape(0);
  require(x_codes.ndim() == 2 && x_codes.shape(0) == q && x_scales.size() == q && norms.size() == q,
          "there must be codes, a scale and a squared length of every row of X");
  const std::int64_t width = x_codes.shape(1), padded = (n + 15) / 16 * 16;
  require(width % 2 == 0 && y_codes.size() == padded * width && y_scales.size() == padded &&
              squares.size() == padded,
          "rows of Y must come in panels of 16, with an even number of codes");
  require(ranges.ndim() == 2 && ranges.shape(1) == 2, "ranges must have two columns");
  std::int64_t n_rows = 0;
  for (std::int64_t r = 0; r < ranges.shape(0); ++r) {
    const std::int64_t from = ranges.data()[2 * r], to = ranges.data()[2 * r + 1];
    require(0 <= from && from < to && to <= n, "a range must be one of rows of Y");
    n_rows += to - from;
  }
  require(k >= 1 && size >= 1 && most >= size && n_rows >= 1, "there must be candidates");
  const ocfuse::Coded coded{{x_codes.data(), x_scales.data()}, {y_codes.data(), y_scales.data()},
                            width, norms.data(), squares.data(), ranges.data(), ranges.shape(0),
                            count(size), count(most)};
  Output<bool> crowded({q});
  bool* flags = crowded.data();
  {
    const Unlocked unlocked;
    OCFUSE_RUN(nearest_by_codes(coded, search.tables, search.answer, flags, threads));
  }
  return search.result(crowded);
}

// The length of the path of every row in every tree.
PyObject* follow(PyObject&, const Arguments& given) {
  const Input<std::int32_t> features(given[0]);
  const Input<float> thresholds(given[1]);
  const Input<double> lengths(given[2]), X(given[3]);
  const int threads = given.small(4);
  require(lengths.ndim() == 2 && X.ndim() == 2, "lengths and X must have two dimensions");
  const std::int64_t width = lengths.shape(1);
  require(width >= 1 && (width & (width - 1)) == 0, "trees must be complete");
  for (const std::int64_t size : {features.size(), thresholds.size()})
    if (size != lengths.size()) throw std::out_of_range("tables of trees must have one size");
  require_numbers(features, X.shape(1), "a feature is no column of X");
  const ocfuse::Forest forest{features.data(), thresholds.data(), lengths.data(),
                              lengths.shape(0), width};
  Output<double> paths({X.shape(0), lengths.shape(0)});
  {
    const Unlocked unlocked;
    OCFUSE_RUN(follow(forest, X.data(), X.shape(0), X.shape(1), paths.data(), threads));
  }
  return paths.release();
}

// Of every value the smaller of the numbers of values in its sorted column not above and
// not below.
PyObject* tails(PyObject&, const Arguments& given) {
  const Input<double> columns(given[0]), X(given[1]);
  const int threads = given.small(2);
  require(columns.ndim() == 2 && X.ndim() == 2 && X.shape(1) == columns.shape(0) &&
              columns.shape(1) >= 1,
          "there must be a sorted column, not empty, for every column of X");
  Output<std::int64_t> counts({X.shape(0), X.shape(1)});
  {
    const Unlocked unlocked;
    OCFUSE_RUN(tails(columns.data(), columns.shape(0), columns.shape(1), X.data(), X.shape(0),
                     counts.data(), threads));
  }
  return counts.release();
}

// Squared distances from -2 x.y, in place.
PyObject* complete(PyObject&, const Arguments& given) {
  InPlace<double> D(given[0]);
  const Input<double> columns(given[1]), rows(given[2]);
  const int threads = given.small(3);
  require(D.ndim() == 2 && columns.ndim() == 1 && rows.ndim() == 1 &&
              columns.shape(0) == D.shape(1) && rows.shape(0) == D.shape(0),
          "there must be a square for every row and for every column of D");
  if (D.size() != 0) {
    const Unlocked unlocked;
    OCFUSE_RUN(complete(D.data(), D.shape(0), D.shape(1), columns.data(), rows.data(), threads));
  }
  Py_RETURN_NONE;
}

// exp(-rate D) of squared distances.
PyObject* decay(PyObject&, const Arguments& given) {
  const Input<double> D(given[0]);
  const double rate = given.number(1);
  const int threads = given.small(2);
  Output<double> K(D.shape(), D.ndim());
  {
    const Unlocked unlocked;
    OCFUSE_RUN(decay(D.data(), D.size(), rate, K.data(), threads));
  }
  return K.release();
}

// Rows as whole numbers of so many bits, and the power of two of every row.
PyObject* whole(PyObject&, const Arguments& given) {
  const Input<double> X(given[0]);
  const int bits = given.small(1), threads = given.small(2);
  require(X.ndim() == 2 && bits >= 1 && bits <= 53, "rows become whole numbers of 1 to 53 bits");
  Output<double> numbers({X.shape(0), X.shape(1)});
  Output<int> exponents({X.shape(0)});
  {
    const Unlocked unlocked;
    OCFUSE_RUN(whole(X.data(), X.shape(0), X.shape(1), bits, numbers.data(), exponents.data(),
                     threads));
  }
  return tuple(numbers, exponents);
}

// The numbers of the k smallest values of every row, smallest first, of equal ones the first.
PyObject* smallest(PyObject&, const Arguments& given) {
  const Input<double> D(given[0]);
  const std::int64_t k = given.whole(1);
  const int threads = given.small(2);
  require(D.ndim() == 2 && k >= 1 && k <= D.shape(1), "k must be in [1, number of columns of D]");
  Output<std::int64_t> index({D.shape(0), k});
  {
    const Unlocked unlocked;
    OCFUSE_RUN(smallest(D.data(), D.shape(0), D.shape(1), k, index.data(), threads));
  }
  return index.release();
}

PyObject* instruction_set(PyObject&, const Arguments&) {
  return PyUnicode_FromString(!force_baseline && has_avx2() ? "AVX2" : "baseline");
}

PyObject* use_baseline(PyObject&, const Arguments& given) {
  force_baseline = given.flag(0);
  Py_RETURN_NONE;
}

PyMethodDef of_candidates[] = {
    method<Candidates, add, 6>("add", "Look at products of some rows x and some rows y."),
    method<Candidates, nearest, 5>("nearest", "Return the nearest, and which rows are crowded."),
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&new_candidates)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&delete_candidates)},
                       {Py_tp_methods, of_candidates},
                       {0, nullptr}};

PyType_Spec candidates = {"ocfuse.kernels._native.Candidates", sizeof(Candidates), 0,
                          Py_TPFLAGS_DEFAULT, slots};

PyMethodDef functions[] = {
    method<PyObject, nearest_by_matrix, 7>("nearest_by_matrix", "Nearest rows by distances."),
    method<PyObject, nearest_by_codes, 8>("nearest_by_codes", "Nearest rows by whole numbers."),
    method<PyObject, follow, 5>("follow", "Lengths of paths in trees."),
    method<PyObject, tails, 3>("tails", "Counts of values in the nearer tail."),
    method<PyObject, complete, 4>("complete", "Complete squared distances in place."),
    method<PyObject, decay, 3>("decay", "Gaussian kernel of squared distances."),
    method<PyObject, whole, 3>("whole", "Rows as whole numbers times a power of two."),
    method<PyObject, smallest, 3>("smallest", "Numbers of the smallest values of rows."),
    method<PyObject, instruction_set, 0>("instruction_set", "Return what the kernel runs on."),
    method<PyObject, use_baseline, 1>(
        "use_baseline", "Run the build for every machine, for tests and measurements."),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "The compiled kernel of loops over rows.",
                      -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  PyObject* made = PyModule_Create(&module);
  if (made == nullptr) return nullptr;
  PyObject* type = PyType_FromSpec(&candidates);
  // the module keeps the type; where it cannot, nobody does
  if (type != nullptr && PyModule_AddObject(made, "Candidates", type) == 0) return made;
  Py_XDECREF(type);
  Py_DECREF(made);
  return nullptr;
}
