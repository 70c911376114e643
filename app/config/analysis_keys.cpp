#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

namespace poisson::app::schema {
namespace {

Keys<AnalysisSpec> const& analysis_keys() {
  using Spec = AnalysisSpec;
  auto const is_operator = [](Spec const& a) { return a.of == AnalysisOf::operator_; };
  auto const is_field = [](Spec const& a) { return a.of == AnalysisOf::field; };
  auto const is_snapshots = [](Spec const& a) { return a.of == AnalysisOf::snapshots; };
  auto const on_plane = [](Spec const& a) { return a.of == AnalysisOf::field && a.sample == SampleShape::plane; };
  constexpr std::int64_t largest = 46340;  // squares fit 32 bits, as LAPACK counts
  static Keys<Spec> const keys{
      key<Spec>(
          "of", Choice<AnalysisOf>{}, [](auto& a) -> auto& { return a.of; }, "",
          "operator: the free part of the stiffness matrix; field: the solution on a lattice of points; snapshots: the solutions "
          "of all cases of a sweep on one mesh.")
          .must_be_given("operator, field or snapshots"),
      key<Spec>(
          "modes", Integer{0, 64}, [](auto& a) -> auto& { return a.modes; }, "",
          "operator: so many modes from either end of the spectrum are written; 0 computes values only. snapshots: at most so many "
          "modes are kept, and at least one.")
          .only("with of: operator or of: snapshots", [](Spec const& a) { return a.of != AnalysisOf::field; }),
      key<Spec>(
          "max_dense", Integer{1, largest}, [](auto& a) -> auto& { return a.max_dense; }, "unknowns",
          "Up to so many free unknowns the matrix is decomposed as a dense one; beyond, the extreme values are estimated from the "
          "coefficients of cg.")
          .only("with of: operator", is_operator),
      key<Spec>(
          "sample", Choice<SampleShape>{}, [](auto& a) -> auto& { return a.sample; }, "",
          "plane: a matrix of points on a plane across the mesh; box: points in the box around the mesh, unfolded in x, y and z.")
          .only("with of: field", is_field),
      key<Spec>(
          "points", Integer{2, 16384, false, true}, [](auto& a) -> auto& { return a.points; }, "",
          "Points in each direction. auto: 256 on a plane, 64 in a box.")
          .only("with of: field", is_field),
      key<Spec>(
          "normal", Choice<Direction>{}, [](auto& a) -> auto& { return a.normal; }, "", "Direction that is normal to the plane.")
          .only("with of: field and sample: plane", on_plane),
      key<Spec>(
          "at", OptionalNumber{}, [](auto& a) -> auto& { return a.at; }, "length",
          "Where the plane cuts that direction. auto: in the middle of the mesh.")
          .only("with of: field and sample: plane", on_plane),
      key<Spec>(
          "error", Number{0, 1}, [](auto& a) -> auto& { return a.error; }, "",
          "The smallest rank is found that has at most this relative error, in the Frobenius norm.")
          .only("with of: field", is_field),
      key<Spec>(
          "leave_out", Integer{0, 99999, false, true}, [](auto& a) -> auto& { return a.leave_out; }, "",
          "Number of the case that the modes are not made from, but tried on. auto: the middle one.")
          .only("with of: snapshots", is_snapshots),
  };
  return keys;
}

struct Analyses {
  [[nodiscard]] std::string allowed() const { return "list of analyses such as {of: operator} or {of: field, error: 1.0e-6}"; }
  void read(YamlNode const& node, std::string const& path, std::vector<AnalysisSpec>& out) const {
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    auto const check = [](YamlNode const& item, std::string const& of_item, AnalysisSpec const& spec) {
      constexpr std::int64_t most_in_box = 512;
      if (spec.of == AnalysisOf::field && spec.sample == SampleShape::box && spec.points_per_direction() > most_in_box)
        reject(item.find("points")->origin, of_item + ".points",
               "found '" + std::to_string(*spec.points) + "'; allowed in a box: integer from 2 to " + std::to_string(most_in_box));
    };
    read_maps(analysis_keys(), node, path, "an analysis such as {of: operator}", out, check);
  }
  [[nodiscard]] std::string write(std::vector<AnalysisSpec> const& value) const { return write_maps(analysis_keys(), value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", json_schema_of(analysis_keys(), AnalysisSpec{})}}; }
};

}  // namespace

Keys<RunConfig> keys_of_analysis() {
  auto const with_sub_volumes = [](RunConfig const& c) { return c.effective.sub_volumes.is_asked(); };
  return {
      section<RunConfig>("analysis", "What is computed from the result."),
      key<RunConfig>("analysis.svd", Analyses{}, POISSON_MEMBER(analysis), "",
                     "Singular value decompositions, one after the other, when the solution is written.")
          .or_null("none")
          .with_elements(analysis_keys())
          .shown_as_comments(),
      section<RunConfig>("analysis.effective",
                         "The effective tensor of the material in a box, from three problems that the program makes."),
      key<RunConfig>(
          "analysis.effective.conditions", Choice<EffectiveConditions>{}, POISSON_MEMBER(effective.conditions), "",
          "periodic: u grows by the length of the box from side to side, and has the period of the box otherwise; fixed: "
          "u is given on two sides, and the others are insulated; both. problem.boundary is not given then."),
      key<RunConfig>("analysis.effective.direction", Choice<Direction>{}, POISSON_MEMBER(effective.direction), "",
                     "Direction of the mean gradient in the problem whose solution is written and shown; both: a periodic one.")
          .only("with analysis.effective.conditions", [](RunConfig const& c) { return c.effective.is_asked(); }),
      section<RunConfig>("analysis.effective.sub_volumes",
                         "Tensors of parts of the box: how much they differ tells whether the sample is large enough."),
      key<RunConfig>("analysis.effective.sub_volumes.size", OneOrThree{{1, 2147483647}}, POISSON_MEMBER(effective.sub_volumes.size),
                     "cells", "Cells of a sub-volume in each direction, after all refinements: 64 or [64, 64, 32].")
          .or_null("none")
          .only("with analysis.effective.conditions", [](RunConfig const& c) { return c.effective.is_asked(); }),
      key<RunConfig>("analysis.effective.sub_volumes.count", Integer{2, 100000}, POISSON_MEMBER(effective.sub_volumes.count), "",
                     "So many sub-volumes, at random places that are all different. They may overlap.")
          .only("with analysis.effective.sub_volumes.size", with_sub_volumes),
      key<RunConfig>("analysis.effective.sub_volumes.seed", Integer{0, 9007199254740992},
                     POISSON_MEMBER(effective.sub_volumes.seed), "",
                     "Of their places: the same seed gives the same ones everywhere.")
          .only("with analysis.effective.sub_volumes.size", with_sub_volumes),
  };
}

}  // namespace poisson::app::schema
