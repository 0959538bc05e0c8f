"""The layers of a procedural scene, in the order in which they are painted: land, ground, ways, houses, trees."""
