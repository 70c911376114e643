#include "gpu/core/separated_code.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poisson {

namespace {

constexpr std::array<Op, 3> names_of_coordinates{Op::x, Op::y, Op::z};

/// Instructions [begin, end) that leave one value, which depends on one coordinate only.
struct PartOfCode {
  std::size_t begin, end, coordinate;
};

/// All parts that belong to no larger one, ascending. Precondition: there are no branches.
std::vector<PartOfCode> largest_parts(ExpressionCode const& code) {
  struct Value {
    std::size_t begin;
    unsigned depends_on;  ///< a bit for each coordinate
  };
  std::vector<PartOfCode> parts;
  auto const take_out = [&](Value const& value, std::size_t end) {
    if (std::has_single_bit(value.depends_on))
      parts.push_back({value.begin, end, static_cast<std::size_t>(std::countr_zero(value.depends_on))});
  };
  std::vector<Value> stack;
  for (std::size_t i = 0; i < code.size(); ++i) {
    int const operands = operands_of(code[i].op);
    if (operands == 0) {
      auto const found = std::find(names_of_coordinates.begin(), names_of_coordinates.end(), code[i].op);
      stack.push_back({i, found == names_of_coordinates.end() ? 0U : 1U << (found - names_of_coordinates.begin())});
    } else if (operands == 2) {
      Value const right = stack.back();
      stack.pop_back();
      Value& left = stack.back();
      unsigned const both = left.depends_on | right.depends_on;
      if (!std::has_single_bit(both)) {
        take_out(left, right.begin);
        take_out(right, i);
      }
      left.depends_on = both;
    }
  }
  take_out(stack.back(), code.size());
  std::sort(parts.begin(), parts.end(), [](PartOfCode const& a, PartOfCode const& b) { return a.begin < b.begin; });
  return parts;
}

bool are_equal(ExpressionCode const& code, PartOfCode const& a, PartOfCode const& b) {
  return std::equal(code.begin() + static_cast<std::ptrdiff_t>(a.begin), code.begin() + static_cast<std::ptrdiff_t>(a.end),
                    code.begin() + static_cast<std::ptrdiff_t>(b.begin), code.begin() + static_cast<std::ptrdiff_t>(b.end),
                    [](Instruction const& i, Instruction const& j) {
                      return i.op == j.op && std::bit_cast<std::uint64_t>(i.value) == std::bit_cast<std::uint64_t>(j.value);
                    });
}

}  // namespace

SeparatedCode separate(ExpressionCode const& code) {
  SeparatedCode result{
      code, {ExpressionCode{Instruction(Op::x)}, ExpressionCode{Instruction(Op::y)}, ExpressionCode{Instruction(Op::z)}}};
  if (std::any_of(code.begin(), code.end(), [](Instruction const& i) { return i.op == Op::jump || i.op == Op::jump_if_zero; }))
    return result;
  std::vector<PartOfCode> const parts = largest_parts(code);
  result.outer.clear();
  std::array<PartOfCode const*, 3> first{};
  std::array<bool, 3> equal{true, true, true};
  for (PartOfCode const& part : parts) {
    PartOfCode const*& known = first[part.coordinate];
    if (known == nullptr)
      known = &part;
    else
      equal[part.coordinate] = equal[part.coordinate] && are_equal(code, *known, part);
  }
  std::size_t next = 0;
  auto const keep_until = [&](std::size_t end) {
    result.outer.insert(result.outer.end(), code.begin() + static_cast<std::ptrdiff_t>(next),
                        code.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (PartOfCode const& part : parts) {
    if (!equal[part.coordinate])
      continue;
    keep_until(part.begin);
    next = part.end;
    result.outer.emplace_back(names_of_coordinates[part.coordinate]);
    result.inner[part.coordinate].assign(code.begin() + static_cast<std::ptrdiff_t>(part.begin),
                                         code.begin() + static_cast<std::ptrdiff_t>(part.end));
  }
  keep_until(code.size());
  return result;
}

}  // namespace poisson
