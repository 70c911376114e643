#include "app/sweep/waiting_cases.hpp"

#include <algorithm>
#include <utility>

namespace poisson::app {

WaitingCases::WaitingCases(std::vector<SweepCase>& cases, SweepSpec const& sweep, Choice choice)
    : cases_(cases), until_(sweep.until), choice_(std::move(choice)) {
  if (until_) {
    studies_ = studies_until(cases, sweep);
    study_of_.resize(cases.size());
    for (std::size_t s = studies_.size(); s-- > 0;) {  // the first one gets to the front
      for (std::size_t const i : studies_[s].cases)
        study_of_[i] = s;
      leave_out_finer(studies_[s], cases_, *until_);
      add_next(studies_[s]);
    }
  } else if (!choice_) {
    for (std::size_t i = 0; i < cases_.size(); ++i)
      if (cases_[i].exit_code < 0)
        queue_.push_back(i);
  }
}

void WaitingCases::largest_first() {
  if (until_)
    return;
  std::vector<double> sizes(cases_.size());
  for (std::size_t const i : queue_)
    sizes[i] = estimated_size(cases_[i].configuration->config());
  std::stable_sort(queue_.begin(), queue_.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
}

bool WaitingCases::choose() {
  if (choice_ && queue_.empty())
    if (auto const next = choice_())
      queue_.push_back(*next);
  return !queue_.empty();
}

std::size_t WaitingCases::take() {
  std::size_t const next = queue_.front();
  queue_.pop_front();
  return next;
}

void WaitingCases::ended(std::size_t number) {
  if (!until_)
    return;
  MeshStudy const& study = studies_[study_of_[number]];
  leave_out_finer(study, cases_, *until_);
  add_next(study);
}

void WaitingCases::add_next(MeshStudy const& study) {
  auto const next = std::find_if(study.cases.begin(), study.cases.end(), [&](std::size_t i) { return cases_[i].exit_code < 0; });
  if (next != study.cases.end())
    queue_.push_front(*next);  // a study that has begun goes on, so that its answer comes early
}

std::string Pace::after(SweepCase const& done, bool may_end_early) {
  double const size = estimated_size(done.configuration->config());
  if (double const unknowns = number_in(done.result, "/dofs"); unknowns > 0)
    unknowns_per_size_ = unknowns / size;
  n_done_ += 1;
  size_done_ += size;
  if (sizes_.empty())
    for (SweepCase const& c : cases_)
      sizes_.push_back(c.configuration ? estimated_size(c.configuration->config()) : 0);
  double n_left = 0, size_left = 0;
  for (std::size_t i = 0; i < cases_.size(); ++i)
    if (cases_[i].exit_code < 0) {
      n_left += 1;
      size_left += sizes_[i];
    }
  constexpr double of_any_case = 1e5;  // a small case costs as much as this many unknowns
  double const seconds = timer_.seconds();
  double const left =
      seconds * (of_any_case * n_left + unknowns_per_size_ * size_left) / (of_any_case * n_done_ + unknowns_per_size_ * size_done_);
  if (!(left > 10))
    return "";
  double const rate = n_done_ / seconds;
  return "; " + (rate > 1 ? number_text(rate) + " cases a second" : seconds_text(1 / rate) + " a case") +
         (may_end_early ? ", at most " : ", about ") + seconds_text(left) + " left";
}

}  // namespace poisson::app
