struct A { int x : 3; };
