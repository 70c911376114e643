#include "assembly/system/field_values.hpp"

#include <algorithm>

namespace poisson::assembly {

template <class T>
std::span<T const> FieldValues<T>::all() const {
  if (fill_)
    std::call_once(stored_->once, [this] {
      stored_->own.resize(size_);
      constexpr std::int64_t piece = std::int64_t{1} << 15;
      auto const n = static_cast<std::int64_t>(size_);
#pragma omp parallel for schedule(static)
      for (std::int64_t first = 0; first < n; first += piece)
        fill_(first, std::min(piece, n - first), stored_->own.data() + first);
      stored_->values = stored_->own;
    });
  return stored_ ? stored_->values : std::span<T const>();
}

template <class T>
void FieldValues<T>::keep() {
  if (empty())
    return;
  std::span<T const> const values = all();
  if (values.data() != stored_->own.data())
    *this = FieldValues(HostVector<T>(values.begin(), values.end()));
  fill_ = nullptr;
}

template class FieldValues<double>;
template class FieldValues<int>;

}  // namespace poisson::assembly
