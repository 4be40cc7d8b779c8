"""What every detector folder must hold, checked without running any of its code and without a JVM."""
