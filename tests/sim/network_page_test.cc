// Every figure of the page of `faro-lab simulate --network` that has a goal meets it. How fast it is made is no matter here.
#include "lab/network/page.h"

#include <gtest/gtest.h>

namespace faro::network {
namespace {

TEST(NetworkPage, meets_its_goals) {
  EXPECT_NE(page_head(1).find("seed 1"), std::string::npos);
  for (const MakeSection make : page_sections()) {
    const Section section = make(1);
    EXPECT_FALSE(section.goals.empty()) << section.text;
    for (const Goal& goal : section.goals)
      EXPECT_TRUE(goal.is_met || goal.is_of_machine) << goal.text;
  }
}

}  // namespace
}  // namespace faro::network
