#include "gpu/formats/cod_sell.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/cod_sell_conversion.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace poisson {

namespace {

/// Estimates group the whole matrix when it has no more entries than this, and no more rows than all samples.
constexpr std::int64_t largest_grouped = 1 << 18, most_samples = 8;

std::int64_t slices_of(std::int64_t n_rows, std::int64_t c) {
  return (n_rows + c - 1) / c;
}

CodSellSearch search_of(FormatOptions const& options, std::int64_t n_rows) {
  std::int64_t const c = options.slice_size;
  CodSellSearch search{options.slice_size, options.pair_window, options.merge_window, options.base_candidates,
                       std::max<std::int64_t>(1024, 32 * c)};
  if (options.conversion == Conversion::sequential)
    search.chunk_rows = std::max<std::int64_t>(1, slices_of(n_rows, c)) * c;
  return search;
}

/// Groups and their arrays.
struct Grouping {
  Grouping(Context& context, std::int64_t n_rows, std::int64_t nnz, std::int64_t c)
      : rows(context, n_rows),
        bases(context, n_rows),
        value_ptr(context, slices_of(n_rows, c) + 1),
        dictionary_ptr(context, slices_of(n_rows, c) + 1),
        shared(context, nnz),
        shared_at(context, slices_of(n_rows, c)) {}
  [[nodiscard]] CodSellGroups view() {
    return {rows.data(), bases.data(), value_ptr.data(), dictionary_ptr.data(), shared.data(), shared_at.data()};
  }

  Array<std::int32_t> rows, bases;
  Array<std::int64_t> value_ptr, dictionary_ptr;
  Array<std::int32_t> shared;
  Array<std::int64_t> shared_at;
};

std::int64_t last_of(Context& context, Array<std::int64_t> const& array) {
  std::int64_t value = 0;
  context.download(&value, array.data() + array.size() - 1, sizeof value);
  return value;
}

/// Entries (values), and how many columns of them are in no row of their own because a dictionary has them.
struct Sample {
  std::int64_t values = 0, saved = 0;
};

/// Groups parts of the matrix on the host, rows [begin, begin + rows) of every begin, as `search` says.
Sample sample(Csr const& matrix, std::vector<std::int64_t> const& begins, std::int64_t rows, std::int64_t sigma,
              CodSellSearch const& search) {
  Context& context = matrix.context();
  CsrMatrix parts;
  parts.row_ptr.assign(1, 0);
  for (std::int64_t const begin : begins) {
    auto const size = static_cast<std::size_t>(rows) + 1, before = parts.columns.size(), at = parts.row_ptr.size() - 1;
    parts.row_ptr.resize(at + size);
    context.download(parts.row_ptr.data() + at, matrix.view().row_ptr + begin, (rows + 1) * std::int64_t{8});
    std::int64_t const first = parts.row_ptr[at], nnz = parts.row_ptr.back() - first;
    for (std::size_t i = at; i < at + size; ++i)
      parts.row_ptr[i] += static_cast<std::int64_t>(before) - first;
    parts.columns.resize(before + static_cast<std::size_t>(nnz));
    if (nnz > 0)
      context.download(parts.columns.data() + before, matrix.view().columns + first, nnz * std::int64_t{4});
  }
  std::int64_t const n = static_cast<std::int64_t>(begins.size()) * rows;
  CsrView const view{.n_rows = n,
                     .n_columns = matrix.n_columns(),
                     .nnz = static_cast<std::int64_t>(parts.columns.size()),
                     .row_ptr = parts.row_ptr.data(),
                     .columns = parts.columns.data()};
  auto const host = make_context(Backend::cpu);
  Array<std::int32_t> const order = ConversionKernels::cpu().rows_by_length(*host, view, sigma);
  Grouping grouping(*host, n, view.nnz, search.slice_size);
  CodSellConversion::cpu().group(*host, view, order.data(), search, grouping.view());
  return {last_of(*host, grouping.value_ptr), (search.slice_size - 1) * last_of(*host, grouping.dictionary_ptr)};
}

FormatEstimate estimate_of(std::int64_t n_rows, std::int64_t n_columns, std::int64_t nnz, std::int64_t stored, std::int64_t saved,
                           FormatOptions const& options) {
  std::int64_t const c = options.slice_size;
  FormatEstimate result;
  result.format = Format::cod_sell;
  result.bytes = (4 + bytes_of_value(options.precision)) * stored - 4 * saved + 4 * n_rows + 16 * (slices_of(n_rows, c) + 1);
  result.bytes_per_product = result.bytes + 8 * (n_rows + n_columns);
  result.conversion_bytes = 4 * nnz + 4 * n_rows + 8 * slices_of(n_rows, c);  // see Grouping
  if (nnz > 0)
    result.padding_ratio = static_cast<double>(stored) / static_cast<double>(nnz);
  if (stored > 0)
    result.shared_columns = static_cast<double>(saved) / static_cast<double>(stored);
  if (!CodSell::has_slice_size(static_cast<int>(c)))
    result.refusal = "cod_sell takes slices of 2 to 256 rows, and slice_size is " + std::to_string(c) + "; use 32";
  return result;
}

}  // namespace

FormatEstimate CodSell::estimate(MatrixShape const& shape, FormatOptions const& options) {
  std::int64_t const c = options.slice_size, slices = slices_of(shape.n_rows, c);
  std::int64_t const length = shape.n_rows > 0 ? (shape.nnz + shape.n_rows - 1) / shape.n_rows : 0;
  bool const one_pattern = shape.n_diagonals > 0 && 4 * shape.n_diagonals <= 5 * length;
  // Nodes of a lattice whose neighbours are all inside of it have 27 columns at equal distances.
  std::int64_t const deep = std::max<std::int64_t>(shape.lattice_nodes - 4, 0),
                     slices_of_deep = shape.n_lattices * deep * deep * deep / c;
  std::int64_t const saved = one_pattern ? slices * (c - 1) * (length - 1) : slices_of_deep * (c - 1) * 26;
  return estimate_of(shape.n_rows, shape.n_rows, shape.nnz, slices * c * length, saved, options);
}

FormatEstimate CodSell::estimate_lower_bound(MatrixShape const& shape, FormatOptions const& options) {
  // Each entry is a value and a C-th of a distance; what the first one's column takes instead is left out.
  std::int64_t const c = options.slice_size;
  FormatEstimate result = estimate_of(shape.n_rows, shape.n_rows, shape.nnz, shape.nnz, (shape.nnz * (c - 1) + c - 1) / c, options);
  result.is_lower_bound = true;
  return result;
}

FormatEstimate CodSell::estimate_exact(Csr const& matrix, FormatOptions const& options) {
  std::int64_t const n = matrix.n_rows(), nnz = matrix.view().nnz, c = options.slice_size;
  std::int64_t const rows = std::max<std::int64_t>(512, 4 * c), sigma = options.sigma.value_or(0);
  if (!has_slice_size(options.slice_size))
    return estimate(MatrixShape{n, nnz, 0, false}, options);
  CodSellSearch search = search_of(options, n);
  if (n <= most_samples * rows && nnz <= largest_grouped) {
    Sample const whole = sample(matrix, {0}, n, sigma, search);
    return estimate_of(n, matrix.n_columns(), nnz, whole.values, whole.saved, options);
  }
  Context& context = matrix.context();
  auto const& kernels = kernels_for<ConversionKernels>(context);
  std::int64_t const stored =
      last_of(context, kernels.slice_ptr(context, matrix.view(), kernels.rows_by_length(context, matrix.view(), sigma).data(), c));
  std::int64_t const samples = std::min(most_samples, n / rows);
  std::vector<std::int64_t> begins;
  for (std::int64_t k = 0; k < samples; ++k)
    begins.push_back(samples > 1 ? (n - rows) / (samples - 1) * k : 0);
  search.chunk_rows = rows;
  Sample const total = sample(matrix, begins, rows, rows, search);
  double const share = total.values > 0 ? static_cast<double>(total.saved) / static_cast<double>(total.values) : 0;
  return estimate_of(n, matrix.n_columns(), nnz, stored, static_cast<std::int64_t>(share * static_cast<double>(stored)), options);
}

std::unique_ptr<Matrix> CodSell::convert(Csr const& csr, FormatOptions const& options) {
  Context& context = csr.context();
  CsrView const& a = csr.view();
  std::int64_t const c = options.slice_size;
  CodSellSearch const search = search_of(options, a.n_rows);
  auto const& conversion = kernels_for<CodSellConversion>(context);
  Grouping grouping(context, a.n_rows, a.nnz, c);
  conversion.group(context, a, kernels_for<ConversionKernels>(context).rows_by_length(context, a, options.sigma.value_or(0)).data(),
                   search, grouping.view());
  std::int64_t const stored = last_of(context, grouping.value_ptr), n_shared = last_of(context, grouping.dictionary_ptr);
  Array<std::int32_t> columns(context, stored - c * n_shared), dictionary(context, n_shared);
  auto const fill = [&](CsrView const& from, double* to) {
    conversion.fill(context, from, search, grouping.view(), columns.data(), dictionary.data(), to);
  };
  StoredEntries entries = StoredEntries::convert(context, a, options, stored, fill);
  CodSellView view;
  view.n_rows = a.n_rows;
  view.n_columns = a.n_columns;
  view.n_slices = slices_of(a.n_rows, c);
  view.slice_size = options.slice_size;
  view.longest_row = a.longest_row;
  double const padding = a.nnz > 0 ? static_cast<double>(stored) / static_cast<double>(a.nnz) : 1;
  return std::unique_ptr<Matrix>(
      new CodSell(context, view, padding,
                  {std::move(grouping.value_ptr), std::move(grouping.dictionary_ptr), std::move(grouping.rows), std::move(columns),
                   std::move(dictionary), std::move(entries)}));
}

CodSell::CodSell(Context& context, CodSellView const& like, double padding_ratio, Storage storage)
    : KernelMatrix(context, like), storage_(std::move(storage)), padding_ratio_(padding_ratio) {
  view_.value_ptr = storage_.value_ptr.data();
  view_.dictionary_ptr = storage_.dictionary_ptr.data();
  view_.rows = storage_.rows.data();
  view_.columns = storage_.columns.data();
  view_.dictionary = storage_.dictionary.data();
  view_.n_values = storage_.entries.size();
  storage_.entries.set_pointers(view_);
}

std::int64_t CodSell::bytes() const {
  return storage_.value_ptr.bytes() + storage_.dictionary_ptr.bytes() + storage_.rows.bytes() + storage_.columns.bytes() +
         storage_.dictionary.bytes() + storage_.entries.bytes();
}

CodSell::Storage CodSell::storage_with(StoredEntries entries, Context& target) const {
  return {storage_.value_ptr.copy_to(target), storage_.dictionary_ptr.copy_to(target), storage_.rows.copy_to(target),
          storage_.columns.copy_to(target),   storage_.dictionary.copy_to(target),     std::move(entries)};
}

std::unique_ptr<Matrix> CodSell::copied_to(Context& target) const {
  return std::unique_ptr<Matrix>(
      new CodSell(target, view_, padding_ratio_, storage_with(storage_.entries.copy_to(target), target)));
}

std::unique_ptr<Matrix> CodSell::in_single() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  return std::unique_ptr<Matrix>(
      new CodSell(context(), view_, padding_ratio_, storage_with(storage_.entries.in_single(context()), context())));
}

CsrMatrix CodSell::host_csr() const {
  std::int64_t const c = view_.slice_size;
  /// One row as it is stored; `columns` and values are C apart.
  struct Row {
    std::int64_t n_shared, n_other;
    std::int32_t const *dictionary, *columns;
    std::int64_t first_value;
  };
  auto const row_at = [&](std::int64_t place) {
    std::int64_t const slice = place / c, first = view_.value_ptr[slice], first_shared = view_.dictionary_ptr[slice];
    std::int64_t const n_shared = view_.dictionary_ptr[slice + 1] - first_shared;
    std::int64_t const room = (view_.value_ptr[slice + 1] - first) / c - n_shared;  // columns: the base and the others
    Row row{n_shared, 0, view_.dictionary + first_shared, view_.columns + (first - c * first_shared) + place % c,
            first + place % c};
    if (room == 0 || row.columns[0] < 0)
      return Row{-1, 0, nullptr, nullptr, 0};
    while (row.n_other + 1 < room && row.columns[(row.n_other + 1) * c] >= 0)
      ++row.n_other;
    return row;
  };
  CsrMatrix result;
  result.n_rows = view_.n_rows;
  result.n_columns = view_.n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(view_.n_rows) + 1);
  result.row_ptr[0] = 0;
#pragma omp parallel for schedule(static)
  for (std::int64_t place = 0; place < view_.n_rows; ++place) {
    Row const row = row_at(place);
    result.row_ptr[static_cast<std::size_t>(view_.rows[place]) + 1] = 1 + row.n_shared + row.n_other;
  }
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
  if (view_.low_values != nullptr)
    result.low_values.resize(result.values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t place = 0; place < view_.n_rows; ++place) {
    Row const row = row_at(place);
    // Both the pattern and the other terms ascend: merge them.
    auto to = static_cast<std::size_t>(result.row_ptr[static_cast<std::size_t>(view_.rows[place])]);
    for (std::int64_t shared = 0, other = 1; shared <= row.n_shared || other <= row.n_other; ++to) {
      std::int32_t const of_pattern = shared > row.n_shared ? 0 : row.columns[0] + (shared == 0 ? 0 : row.dictionary[shared - 1]);
      std::int64_t from = row.first_value;
      if (other > row.n_other || (shared <= row.n_shared && of_pattern < row.columns[other * c])) {
        result.columns[to] = of_pattern;
        from += shared++ * c;
      } else {
        result.columns[to] = row.columns[other * c];
        from += (row.n_shared + other++) * c;
      }
      result.values[to] = storage_.entries.value(from);
      if (view_.low_values != nullptr)
        result.low_values[to] = view_.low_values[from];
    }
  }
  return result;
}

}  // namespace poisson
