// A plate of 2 x 1 x 0.2 with a hole of radius 0.25 through its middle: quadrilaterals in its plane, extruded in 2 layers of bricks.
SetFactory("OpenCASCADE");
Rectangle(1) = {0, 0, 0, 2, 1};
Disk(2) = {1, 0.5, 0, 0.25};
BooleanDifference(3) = { Surface{1}; Delete; }{ Surface{2}; Delete; };
Recombine Surface{3};
Mesh.RecombinationAlgorithm = 3;  // quadrilaterals only
plate() = Extrude {0, 0, 0.2} { Surface{3}; Layers{2}; Recombine; };

e = 1e-3;
left() = Surface In BoundingBox {-e, -e, -e, e, 1 + e, 0.2 + e};
right() = Surface In BoundingBox {2 - e, -e, -e, 2 + e, 1 + e, 0.2 + e};
hole() = Surface In BoundingBox {0.75 - e, 0.25 - e, -e, 1.25 + e, 0.75 + e, 0.2 + e};
Physical Volume("plate") = {plate(1)};
Physical Surface("left") = {left()};
Physical Surface("right") = {right()};
Physical Surface("hole") = {hole()};
