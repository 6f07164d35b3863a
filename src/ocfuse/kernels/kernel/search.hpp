// What the kernel is asked: plain arrays, no Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ocfuse {

// A row that may be among the nearest, and its rounded value.
template <class T>
struct Entry {
  T value;
  std::int32_t row;
  bool operator<(const Entry& other) const { return value < other.value; }
};

// Here and above, for the standard library: it would call, not take in, what is built for
// one instruction set.
template <class T>
struct Within {
  T limit;
  bool operator()(const Entry<T>& entry) const { return entry.value <= limit; }
};

// A row whose squared distance is known.
struct Measured {
  double square;
  std::int64_t row;
  bool operator<(const Measured& other) const {
    return square < other.square || (square == other.square && row < other.row);
  }
};

// For every row x of a table, all rows y seen so far that may be among its k
// nearest. They are judged by values |x - y|^2 - shift(x) whose error is below
// c (|x|^2 + |y|^2) + tiny, hence below c (3 |x|^2 + 2 |x - y|^2) + tiny.
// A row with more than `most` of them is crowded and keeps none: its neighbours are
// too near to each other for the precision of the values.
template <class T>
struct Candidates {
  std::size_t k, most;
  double c, tiny;
  std::vector<double> norms;  // |x|^2
  std::vector<double> shift;  // what the values lack
  std::vector<T> limit;       // a value beyond it is no candidate
  std::vector<std::vector<Entry<T>>> kept;

  std::vector<char> crowded;

  Candidates(std::size_t q, std::size_t k_, std::size_t most_, double c_, double tiny_)
      : k(k_), most(most_), c(c_), tiny(tiny_), norms(q), shift(q),
        limit(q, std::numeric_limits<T>::infinity()), kept(q), crowded(q) {}
};

// Values of some rows x and some rows y, and the numbers of both.
template <class T>
struct Block {
  const T* values;       // (n_rows, n_columns)
  std::int64_t stride;   // from row to row
  std::int64_t n_rows, n_columns;
  const std::int32_t* rows;
  const std::int32_t* columns;
};

// Rows x to compare with rows y.
template <class T>
struct Tables {
  const T* X;  // (q, m)
  const T* Y;  // (n, m)
  std::int64_t q, n, m;
  // Row y stands for the rows of these numbers, ascending: numbers[starts[y]] and on.
  // Without them it stands for itself.
  const std::int64_t* starts;   // (n + 1,)
  const std::int64_t* numbers;
};

// The k nearest of every row, nearest first: (q, k) both.
struct Nearest {
  double* squares;
  std::int64_t* index;
  std::int64_t k;
};

// Rows as whole numbers: codes times a scale, a power of two.
struct Codes {
  const std::int16_t* codes;
  const float* scales;
};

// What a search by products of codes compares: `width` numbers per row, of rows y those
// in the ranges [ranges[0], ranges[1]), [ranges[2], ranges[3]), ... The codes of rows y lie
// in panels: of 16 rows the first two codes of each, then the next two.
struct Coded {
  Codes x, y;
  std::int64_t width;
  const double* norms;   // |x|^2
  const float* squares;  // |y|^2
  const std::int64_t* ranges;
  std::int64_t n_ranges;
  std::size_t size, most;  // candidates of a row: at least, and at most
};

// Complete trees: the root is node 1, node i has the children 2 i and 2 i + 1.
struct Forest {
  const std::int32_t* features;  // (trees, width)
  const float* thresholds;       // (trees, width)
  const double* lengths;         // (trees, width)
  std::int64_t trees, width;
};

// GCC for Windows does not align its stack for vectors of this size.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32)
#define OCFUSE_HAS_AVX2_BUILD 1
#endif

// One build of the kernel per instruction set; module.cpp picks at run time.
#define OCFUSE_DECLARE_KERNEL                                                               \
  void add_products(Candidates<float>& found, const Block<float>& products,                 \
                    const float* row_squares, const float* column_squares, bool both);      \
  void order(Candidates<float>& found, const Tables<double>& tables, const Nearest& answer, \
             int threads);                                                                  \
  void nearest_by_codes(const Coded& coded, const Tables<float>& tables,                    \
                        const Nearest& answer, bool* crowded, int threads);                 \
  void nearest_by_matrix(const double* D, const double* norms, double c,                    \
                         const Tables<double>& tables, const Nearest& answer, int threads); \
  void follow(const Forest& forest, const double* X, std::int64_t q, std::int64_t m,        \
              double* lengths, int threads);                                                \
  void tails(const double* columns, std::int64_t m, std::int64_t n, const double* X,        \
             std::int64_t q, std::int64_t* counts, int threads);                            \
  void complete(double* D, std::int64_t q, std::int64_t n, const double* columns,           \
                const double* rows, int threads);                                           \
  void decay(const double* D, std::int64_t size, double rate, double* out, int threads);    \
  void whole(const double* X, std::int64_t q, std::int64_t m, int bits, double* out,        \
             int* exponents, int threads);                                                  \
  void smallest(const double* D, std::int64_t q, std::int64_t n, std::int64_t k,            \
                std::int64_t* index, int threads);

namespace baseline {
OCFUSE_DECLARE_KERNEL
}
#ifdef OCFUSE_HAS_AVX2_BUILD
namespace avx2 {
OCFUSE_DECLARE_KERNEL
}
#endif

}  // namespace ocfuse
