"""The only package that knows more about Spark than its public Python API promises.

Only here are the JVM's objects behind PySpark reached, connector classes named, and texts of Spark's errors and plans
read. Each function states what it assumes, and `tests/spark_contract` has one test for each assumption: an upgrade of
Spark starts there. Everything here needs Spark Classic; Spark Connect has no JVM to reach.
"""
