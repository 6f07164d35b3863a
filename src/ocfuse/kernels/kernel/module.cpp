// The door between Python and the kernel: checks shapes and numbers, lets go of the
// interpreter, picks the instruction set.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "search.hpp"

namespace py = pybind11;

namespace {

template <class T>
using Input = py::array_t<T, py::array::c_style>;
using Members = std::pair<Input<std::int64_t>, Input<std::int64_t>>;

bool has_avx2() {
#ifdef OCFUSE_HAS_AVX2_BUILD
  return __builtin_cpu_supports("avx2");
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

void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

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

// The tables and the answer of a search, their shapes checked. Without members every
// row stands for itself.
template <class T>
class Search {
 public:
  Search(const Input<T>& X, const Input<T>& Y, std::int64_t k)
      : squares_({X.shape(0), k}), index_({X.shape(0), k}) {
    require(X.ndim() == 2 && Y.ndim() == 2 && X.shape(1) == Y.shape(1),
            "X and Y must have two dimensions and the same columns");
    require(Y.shape(0) <= std::numeric_limits<std::int32_t>::max(), "too many rows");
    tables = {X.data(), Y.data(), X.shape(0), Y.shape(0), X.shape(1), nullptr, nullptr};
    answer = {squares_.mutable_data(), index_.mutable_data(), k};
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

  py::tuple result() const { return py::make_tuple(squares_, index_); }

  ocfuse::Tables<T> tables;
  ocfuse::Nearest answer;

 private:
  py::array_t<double> squares_;
  py::array_t<std::int64_t> index_;
};

// The candidates of some rows, found from products in single precision.
class Candidates {
 public:
  Candidates(const Input<double>& norms, std::int64_t k, std::int64_t most, double c, double tiny)
      : found_(count(norms.size()), count(k), count(most), c, tiny) {
    require(norms.ndim() == 1 && k >= 1 && most >= k, "norms must have one dimension, 1 <= k <= most");
    require(c <= 0.01, "too many columns for single precision");
    std::copy_n(norms.data(), norms.size(), found_.norms.begin());
    std::copy_n(norms.data(), norms.size(), found_.shift.begin());
  }

  void add(const py::array_t<float>& products, const Input<std::int32_t>& rows,
           const Input<std::int32_t>& columns, const Input<float>& row_squares,
           const Input<float>& column_squares, bool both) {
    require(products.ndim() == 2 && products.shape(0) == rows.size() &&
                products.shape(1) == columns.size() && column_squares.size() == columns.size() &&
                row_squares.size() == rows.size(),
            "products must have a row per row number and a column per column number");
    require(products.shape(1) < 2 || products.strides(1) == sizeof(float),
            "the rows of products must be contiguous");
    const std::int64_t n = static_cast<std::int64_t>(found_.kept.size());
    require_numbers(rows, n, "a row number is too large");
    const std::int32_t largest =
        require_numbers(columns, both ? n : std::numeric_limits<std::int32_t>::max(),
                        "a column number is too large");
    for (std::int64_t j = 0; both && j < columns.size(); ++j)
      require(columns.data()[j] == columns.data()[0] + j, "columns must follow each other");
    largest_ = std::max(largest_, largest);
    const ocfuse::Block<float> block{
        products.data(),   products.strides(0) / static_cast<std::int64_t>(sizeof(float)),
        products.shape(0), products.shape(1), rows.data(), columns.data()};
    const py::gil_scoped_release release;
    OCFUSE_RUN(add_products(found_, block, row_squares.data(), column_squares.data(), both));
  }

  // The answer, and which rows are crowded: what it says of them is nothing.
  py::tuple nearest(const Input<double>& X, const Input<double>& Y, const Members& members,
                    std::int64_t k, int threads) {
    Search<double> search(X, Y, k);
    search.set_members(members);
    require(count(X.shape(0)) == found_.kept.size(), "X must have a row per row of candidates");
    require(largest_ < Y.shape(0), "a candidate is no row of Y");
    const std::int64_t* starts = search.tables.starts;
    for (std::size_t i = 0; i < found_.kept.size(); ++i) {
      std::int64_t size = 0;
      for (const auto& entry : found_.kept[i]) size += starts[entry.row + 1] - starts[entry.row];
      require(found_.crowded[i] || size >= k, "there are fewer candidates than neighbours");
    }
    {
      const py::gil_scoped_release release;
      OCFUSE_RUN(order(found_, search.tables, search.answer, threads));
    }
    py::array_t<bool> crowded(X.shape(0));
    std::copy(found_.crowded.begin(), found_.crowded.end(), crowded.mutable_data());
    return py::make_tuple(search.result(), crowded);
  }

 private:
  ocfuse::Candidates<float> found_;
  std::int32_t largest_ = -1;
};

// The nearest rows, given rounded squared distances in double precision.
py::tuple nearest_by_matrix(const Input<double>& D, const Input<double>& norms, double c,
                            const Input<double>& X, const Input<double>& Y, std::int64_t k,
                            int threads) {
  Search<double> search(X, Y, k);
  require(D.ndim() == 2 && norms.ndim() == 1 && D.shape(0) == X.shape(0) &&
              D.shape(1) == Y.shape(0) && norms.size() == X.shape(0),
          "D must have a row per row of X and a column per row of Y, norms a number per row of X");
  require(k >= 1 && k <= Y.shape(0), "k must be in [1, number of rows of Y]");
  require(c <= 0.01, "there must not be too many columns");
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(nearest_by_matrix(D.data(), norms.data(), c, search.tables, search.answer, threads));
  }
  return search.result();
}

// Codes of rows, their scales and squared lengths, and the rows themselves.
template <class T>
using CodedRows = std::tuple<Input<std::int16_t>, Input<float>, Input<T>, Input<float>>;

// The nearest of the rows in some ranges that products of codes say are near, and which
// rows are crowded: what it says of them is nothing.
py::tuple nearest_by_codes(const CodedRows<double>& x, const CodedRows<float>& y,
                           const Members& members, const Input<std::int64_t>& ranges,
                           std::int64_t k, std::int64_t size, std::int64_t most, int threads) {
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
    const std::int64_t from = ranges.at(r, 0), to = ranges.at(r, 1);
    require(0 <= from && from < to && to <= n, "a range must be one of rows of Y");
    n_rows += to - from;
  }
  require(k >= 1 && size >= 1 && most >= size && n_rows >= 1, "there must be candidates");
  const ocfuse::Coded coded{{x_codes.data(), x_scales.data()}, {y_codes.data(), y_scales.data()},
                            width, norms.data(), squares.data(), ranges.data(), ranges.shape(0),
                            count(size), count(most)};
  py::array_t<bool> crowded(q);
  bool* flags = crowded.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(nearest_by_codes(coded, search.tables, search.answer, flags, threads));
  }
  return py::make_tuple(search.result(), crowded);
}

// The length of the path of every row in every tree.
py::array_t<double> follow(const Input<std::int32_t>& features, const Input<float>& thresholds,
                           const Input<double>& lengths, const Input<double>& X, int threads) {
  require(lengths.ndim() == 2 && X.ndim() == 2, "lengths and X must have two dimensions");
  const std::int64_t width = lengths.shape(1);
  require(width >= 1 && (width & (width - 1)) == 0, "trees must be complete");
  for (const std::int64_t size : {features.size(), thresholds.size()})
    if (size != lengths.size()) throw py::index_error("tables of trees must have one size");
  require_numbers(features, X.shape(1), "a feature is no column of X");
  const ocfuse::Forest forest{features.data(), thresholds.data(), lengths.data(),
                              lengths.shape(0), width};
  py::array_t<double> paths({X.shape(0), lengths.shape(0)});
  double* out = paths.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(follow(forest, X.data(), X.shape(0), X.shape(1), out, threads));
  }
  return paths;
}

// Of every value the smaller of the numbers of values in its sorted column not above and
// not below.
py::array_t<std::int64_t> tails(const Input<double>& columns, const Input<double>& X,
                                int threads) {
  require(columns.ndim() == 2 && X.ndim() == 2 && X.shape(1) == columns.shape(0) &&
              columns.shape(1) >= 1,
          "there must be a sorted column, not empty, for every column of X");
  py::array_t<std::int64_t> counts({X.shape(0), X.shape(1)});
  std::int64_t* out = counts.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(tails(columns.data(), columns.shape(0), columns.shape(1), X.data(), X.shape(0),
                     out, threads));
  }
  return counts;
}

// Squared distances from -2 x.y, in place.
void complete(py::array_t<double, py::array::c_style>& D, const Input<double>& columns,
              const Input<double>& rows, int threads) {
  require(D.ndim() == 2 && columns.ndim() == 1 && rows.ndim() == 1 &&
              columns.shape(0) == D.shape(1) && rows.shape(0) == D.shape(0),
          "there must be a square for every row and for every column of D");
  if (D.size() == 0) return;
  double* at = D.mutable_data();
  const py::gil_scoped_release release;
  OCFUSE_RUN(complete(at, D.shape(0), D.shape(1), columns.data(), rows.data(), threads));
}

// exp(-rate D) of squared distances.
py::array_t<double> decay(const Input<double>& D, double rate, int threads) {
  py::array_t<double> K(std::vector<py::ssize_t>(D.shape(), D.shape() + D.ndim()));
  double* out = K.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(decay(D.data(), D.size(), rate, out, threads));
  }
  return K;
}

// Rows as whole numbers of so many bits, and the power of two of every row.
std::pair<py::array_t<double>, py::array_t<int>> whole(const Input<double>& X, int bits,
                                                       int threads) {
  require(X.ndim() == 2 && bits >= 1 && bits <= 53, "rows become whole numbers of 1 to 53 bits");
  py::array_t<double> numbers({X.shape(0), X.shape(1)});
  py::array_t<int> exponents(X.shape(0));
  double* out = numbers.mutable_data();
  int* powers = exponents.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(whole(X.data(), X.shape(0), X.shape(1), bits, out, powers, threads));
  }
  return {numbers, exponents};
}

// The numbers of the k smallest values of every row, smallest first, of equal ones the first.
py::array_t<std::int64_t> smallest(const Input<double>& D, std::int64_t k, int threads) {
  require(D.ndim() == 2 && k >= 1 && k <= D.shape(1), "k must be in [1, number of columns of D]");
  py::array_t<std::int64_t> index({D.shape(0), k});
  std::int64_t* out = index.mutable_data();
  {
    const py::gil_scoped_release release;
    OCFUSE_RUN(smallest(D.data(), D.shape(0), D.shape(1), k, out, threads));
  }
  return index;
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The compiled kernel of loops over rows.";
  py::class_<Candidates>(module, "Candidates")
      .def(py::init<const Input<double>&, std::int64_t, std::int64_t, double, double>())
      .def("add", &Candidates::add)
      .def("nearest", &Candidates::nearest);
  module.def("nearest_by_matrix", &nearest_by_matrix);
  module.def("nearest_by_codes", &nearest_by_codes);
  module.def("follow", &follow);
  module.def("tails", &tails);
  module.def("complete", &complete, py::arg("D").noconvert(), py::arg("columns"), py::arg("rows"),
             py::arg("threads"));
  module.def("decay", &decay);
  module.def("whole", &whole);
  module.def("smallest", &smallest);
  module.def("instruction_set",
             [] { return std::string(!force_baseline && has_avx2() ? "AVX2" : "baseline"); });
  module.def("use_baseline", [](bool yes) { force_baseline = yes; },
             "Run the build for every machine, for tests and measurements.");
}
