// poisson_matrix_market_fuzz [COUNT] [SEED]: reads COUNT (10^6) damaged Matrix Market texts. Built with AddressSanitizer and
// UndefinedBehaviourSanitizer, which end the program at the first bad access. Exit code 1 when the reader misbehaves otherwise.
#include "tests/app/io/matrix_market_mutations.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  long const count = argc > 1 ? std::atol(argv[1]) : 1000000;
  auto const seed = static_cast<std::uint64_t>(argc > 2 ? std::atol(argv[2]) : 1);
  poisson::app::test::MatrixMarketMutations mutations(seed);
  int accepted = 0;
  for (long i = 0; i < count; ++i) {
    std::string const text = mutations.next();
    if (std::string const problem = poisson::app::test::misbehaviour(text, accepted); !problem.empty()) {
      std::fprintf(stderr, "input %ld of seed %llu: %s\n%s\n", i, static_cast<unsigned long long>(seed), problem.c_str(),
                   text.c_str());
      return 1;
    }
  }
  std::printf("%ld inputs, %d accepted, no misbehaviour\n", count, accepted);
}
