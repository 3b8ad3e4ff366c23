"""What shape.py counts in made-up sources, and what it complains about."""

import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from shape import LIST, Sources, mistakes, read_limits

LARGE = "class Large {\n" + "".join(f"  void f{i}();\n" for i in range(41)) + "};\n"


class ShapeTest(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def sizes(self, text, name="native/a.h"):
        self.write(name, text)
        types = Sources(self.root).types[name].values()
        return {each.name: (len(each.methods), each.fields) for each in types if not each.name.startswith("__anon")}

    def mistakes(self, functions=0, verbs_to_send=0, channel_functions=0, node_functions=0, operator_functions=0, column_functions=0):
        limits = {
            "public_functions": functions,
            "verbs_to_send": verbs_to_send,
            "channel_functions": channel_functions,
            "node_functions": node_functions,
            "operator_functions": operator_functions,
            "column_functions": column_functions,
        }
        return list(mistakes(self.root, limits))

    # --- what is counted

    def test_methods_and_fields_of_a_class(self):
        text = """
            namespace a::b {
            class C final : public Base<int(int)> {
             public:
              C() : x_{1}, y_(2) { if (x_) return; }
              explicit C(int x) noexcept;
              ~C() = default;
              int f(int a, std::pair<int, int> b = {}) const { return a < 1 ? 2 : 3; }
              int f() const;
              template <typename T>
              void g(T&& t) noexcept(false);
              bool operator<(const C&) const = default;
             private:
              friend class D;
              using E = int (*)(int);
              static constexpr int kLimit = 3;
              static int count_;
              static void h();
              int x_ = 0, z_{3};
              std::map<int, std::function<void(int)>> y_;
              alignas(64) std::atomic<int> w_{kLimit};  // int comment_;
              void (*callback_)(int) = nullptr;
              std::string text_ = "int string_; {";
            };
            }"""
        self.assertEqual({"C": (8, 6)}, self.sizes(text))

    def test_types_in_types_are_counted_apart(self):
        text = "class A { struct B { int x; void f(); struct { int y; } inner; }; enum class E { e, f }; B b_; void g(); };"
        self.assertEqual({"A": (1, 1), "B": (1, 2), "E": (0, 0)}, self.sizes(text))

    def test_a_method_whose_body_is_elsewhere_counts_where_it_is_declared(self):
        self.assertEqual({"A": (1, 0)}, self.sizes("class A { void f(); };\nvoid A::f() { struct { int x; } y; }\n"))

    def test_a_constructor_with_members_in_braces_is_one_method(self):
        self.assertEqual({"A": (2, 2)}, self.sizes("struct A { A() : x{1}, y{} {} void f() {} int x; int y; };"))

    def test_a_header_for_c_is_read(self):
        text = """
            #ifdef __cplusplus
            extern "C" {
            #endif
            typedef struct faro_a { int x; int y; } faro_a;
            int faro_f(void);
            #ifdef __cplusplus
            }
            #endif"""
        self.assertEqual({"faro_a": (0, 2)}, self.sizes(text))

    def test_a_class_with_a_constraint_is_read(self):
        text = "template <typename T> requires requires(T t) { t.f(); } class A { void f(); int x_; };"
        self.assertEqual({"A": (1, 1)}, self.sizes(text))

    def test_a_class_of_java(self):
        text = """
            package a;
            /** class X { */
            @SuppressWarnings({"unused", "x"})
            public final class A<T extends B<T>> implements C {
              private static final int LIMIT = 3;
              private final int[] x = {1, 2};
              private long y = 0, z;
              private final Runnable r = () -> { int q; };
              private final D d = new D() { int p; void h() {} };
              static { System.loadLibrary("x"); }
              A(int x) { this.y = x; }
              @Override public <R> R f(@Nullable R r) throws E { return r; }
              abstract int g();
              enum State { one, two { void m() {} }; int code; int code() { return code; } }
              record Point(int a, int b) { int sum() { return a + b; } }
              interface Listener { void on(int a); default void off() {} }
            }"""
        expected = {"A": (4, 5), "State": (1, 1), "Listener": (2, 0)}  # to Ctags the record is a method
        self.assertEqual(expected, self.sizes(text, "java/a/A.java"))

    def test_public_functions_of_a_header(self):
        text = """
            namespace faro {
            namespace detail { void hidden(); struct Hidden { void f(); }; }
            class A {
             public:
              A(); ~A(); A& operator=(A&&);
              void f();
              void f(int);
              static A open();
              class In { public: void g(); private: void h(); };
             protected:
              void i();
             private:
              struct Private { void j(); };
              void k();
            };
            struct B { int x = 0; bool l() const { return x; } };
            void free(int);
            inline void A::f() {}
            template <typename T> void free(T t) { t(); }
            }"""
        self.write("native/include/faro/a.h", text)
        functions = Sources(self.root).public_functions("native/include/faro/a.h")
        self.assertEqual(["f", "f", "free", "free", "g", "l", "open"], sorted(functions))

    # --- what is wrong

    def test_a_class_that_is_too_large(self):
        self.write("native/a.h", LARGE)
        self.assertEqual(["native/a.h: Large has 41 methods and 0 fields: at most 40 and 18"], self.mistakes())

    def test_a_class_with_too_many_fields(self):
        fields = "".join(f" int x{i}_;" for i in range(19))
        self.write("java/a/A.java", f"class A {{ void f() {{}} {fields} }}")
        self.assertEqual(["java/a/A.java: A has 1 methods and 19 fields: at most 40 and 18"], self.mistakes())
        self.write("java/a/A.java", f"class A {{ {fields} }}")  # a record
        self.assertEqual([], self.mistakes())

    def test_the_public_api_may_not_grow(self):
        api = "namespace faro { struct A { void send(); void try_send(); void sender(); }; }"
        self.write("native/include/faro/a.h", api)
        self.assertEqual([], self.mistakes(functions=3, verbs_to_send=2))
        self.assertEqual(
            ["native/include/faro: 3 public_functions: at most 2", "native/include/faro: 2 verbs_to_send: at most 1"],
            self.mistakes(functions=2, verbs_to_send=1),
        )
        self.assertEqual(
            ["native/include/faro: only 3 public_functions now: write that into shape.list"],
            self.mistakes(functions=4, verbs_to_send=2),
        )

    def test_the_list_of_the_project_can_be_read(self):
        self.assertGreater(read_limits(LIST)["public_functions"], 0)

    def test_functions_of_operators_are_counted_by_themselves(self):
        self.write("native/include/faro/aggregate.h", "namespace faro { struct A { void add(); void next(); }; }")
        self.assertEqual([], self.mistakes(operator_functions=2))

    def test_functions_of_channels_are_counted_by_themselves(self):
        self.write("native/include/faro/endpoint.h", "namespace faro { class Poller { public: void poll(); void send(); }; }")
        self.assertEqual([], self.mistakes(channel_functions=2))
        self.assertEqual(["native/include/faro: 2 channel_functions: at most 1"], self.mistakes(channel_functions=1))


if __name__ == "__main__":
    unittest.main()
