#include "assembly/system/field_values.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iterator>
#include <vector>

namespace poisson::assembly {

template <class T>
std::span<T const> FieldValues<T>::all() const {
  if (fill_)
    std::call_once(stored_->once, [this] {
      stored_->own.resize(size_);
      constexpr std::int64_t piece = std::int64_t{1} << 15;
      auto const n = static_cast<std::int64_t>(size_);
      std::exception_ptr failure;
#pragma omp parallel for schedule(static)
      for (std::int64_t first = 0; first < n; first += piece)
        try {
          fill_(first, std::min(piece, n - first), stored_->own.data() + first);
        } catch (...) {
#pragma omp critical(poisson_field_values)
          failure = std::current_exception();
        }
      if (failure)
        std::rethrow_exception(failure);
      stored_->values = stored_->own;
      stored_->are_here = true;
    });
  return stored_ ? stored_->values : std::span<T const>();
}

template <class T>
void FieldValues<T>::read(std::int64_t first, std::int64_t n, T* out) const {
  if (n == 0)
    return;
  if (fill_ && !stored_->are_here)
    fill_(first, n, out);
  else
    std::copy_n(all().data() + first, n, out);
}

template <class T>
void FieldValues<T>::read_at(std::span<std::int64_t const> places, std::int64_t n, T* out) const {
  constexpr std::int64_t piece = 512;
  std::int64_t const n_places = std::ssize(places);
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t begin = 0; begin < n_places; begin += piece)
    try {
      if (std::int64_t const end = std::min(begin + piece, n_places); pick_ && !stored_->are_here) {
        std::vector<std::int64_t> all;
        for (std::int64_t const place : places.subspan(begin, end - begin))
          for (std::int64_t component = 0; component < n; ++component)
            all.push_back(place + component);
        pick_(all, out + n * begin);
      } else {
        for (std::int64_t i = begin; i < end; ++i)
          if (i > begin && places[i] == places[i - 1])
            std::copy_n(out + n * (i - 1), n, out + n * i);
          else
            read(places[i], n, out + n * i);
      }
    } catch (...) {
#pragma omp critical(poisson_field_values)
      failure = std::current_exception();
    }
  if (failure)
    std::rethrow_exception(failure);
}

template <class T>
void FieldValues<T>::pick(std::span<std::int64_t const> places, T* out) const {
  if (pick_ && !stored_->are_here) {
    pick_(places, out);
    return;
  }
  for (std::int64_t const place : places)
    read(place, 1, out++);
}

template <class T>
void FieldValues<T>::keep() {
  if (empty())
    return;
  std::span<T const> const values = all();
  if (values.data() != stored_->own.data())
    *this = FieldValues(HostVector<T>(values.begin(), values.end()));
  fill_ = nullptr;
  pick_ = nullptr;
}

template class FieldValues<double>;
template class FieldValues<int>;
template class FieldValues<std::int64_t>;

}  // namespace poisson::assembly
