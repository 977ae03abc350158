namespace ringsim {}
