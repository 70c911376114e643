# Registers an executable of GoogleTest with ctest as `shards` tests NAME.0, NAME.1 ..., each a process that runs its share of the
# cases. One process for each case would start two thousand, many of which load deal.II first. `filter` chooses the cases.
function(poisson_add_shards name shards filter environment)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}.${shard} COMMAND ${name} "--gtest_filter=${filter}")
    set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT 1200 COST 30
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};${environment}")
  endforeach()
endfunction()
