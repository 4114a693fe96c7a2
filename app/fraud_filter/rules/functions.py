"""The list of what a rule may be made of: classes of Spark's expressions that answer every record, and why.

Rules are code, so the list names what is taken; anything else is refused, also what a later Spark adds. The names are
those of Catalyst's classes after analysis: whatever a function is called in a rule, it ends as one of them. Spark's
ANSI mode is off (`session`), so what has no answer is null. `tests/embedded/test_fuzzed_rules.py` draws rules from all
of Spark's functions and tries what is taken on hostile records.
"""

from __future__ import annotations

from fraud_filter.rules import cost
from fraud_filter.rules.cost import Shape

#: Why it is taken: bounds of what it makes and costs: classes.
LISTED: tuple[tuple[str, Shape, str], ...] = (
    ("compares; null where an operand is", cost.value,
     "EqualTo EqualNullSafe EqualNull GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual Between In InSet "
     "IsNull IsNotNull IsNaN IsUnknown"),
    ("joins truth values", cost.value, "And Or Not"),
    ("is one of its operands", cost.same_text,
     "CaseWhen If Coalesce Nvl Nvl2 NullIf NaNvl NullIfZero ZeroIfNull Greatest Least With "
     "CommonExpressionDef Alias"),
    ("gives null for what it can't convert", cost.converted, "Cast"),
    ("gives null, or goes round at the limits of its type", cost.value,
     "Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs BitwiseAnd BitwiseOr "
     "BitwiseXor BitwiseNot BitwiseCount ShiftLeft ShiftRight ShiftRightUnsigned CheckOverflow"),
    ("gives null where its operand throws", cost.same_text,
     "TryEval TryAdd TrySubtract TryMultiply TryDivide TryMod"),
    ("is a number for every number", cost.value,
     "Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Ceil Cos Cosh Cot Csc Exp Expm1 EulerNumber Factorial Floor Hypot "
     "Log Log10 Log1p Log2 Logarithm Pi Pow Rint Sec Signum Sin Sinh Sqrt Tan Tanh ToDegrees ToRadians WidthBucket"),
    ("is a number with as many digits as the rule says", cost.rounded, "Round BRound RoundCeil RoundFloor"),
    ("is a field of every date and time", cost.value,
     "Year Quarter Month DayOfMonth DayOfWeek DayOfYear WeekDay WeekOfYear Hour Minute Second SecondWithFraction "
     "Extract DayName MonthName UnixDate UnixMicros UnixMillis UnixSeconds DateDiff DateAdd DateSub DateFromUnixDate "
     "MicrosToTimestamp TruncDate TruncTimestamp"),
    ("knows the format from the rule, and gives null for what is no date and time", cost.formatted,
     "ParseToDate ParseToTimestamp UnixTimestamp ToUnixTimestamp"),
    ("is a number for every text", cost.value,
     "Length OctetLength BitLength Ascii Crc32 Murmur3Hash XxHash64 Luhncheck IsValidUTF8"),
    ("is as long as its operands", cost.same_text,
     "StringTrim StringTrimLeft StringTrimRight StringTrimBoth Reverse SoundEx StringTranslate InitCap Chr"),
    ("is three times as long at most", cost.longer_text, "Upper Lower Hex Base64 Md5 Sha1 Sha2"),
    ("is part of a text", cost.part, "Substring Left Right"),
    ("is its operands together", cost.joined, "Concat ConcatWs"),
    ("looks for one text in another", cost.search, "StartsWith EndsWith Contains StringInstr StringLocate FindInSet"),
    ("ends where it finds a text", cost.search_text, "SubstringIndex"),
    ("is as long as the rule's own texts make it", cost.replaced, "StringReplace"),
    ("is as long as the rule says", cost.padded, "StringLPad StringRPad"),
    ("is as often there as the rule says", cost.repeated, "StringRepeat StringSpace"),
    ("compares short texts", cost.distance, "Levenshtein"),
    ("knows the pattern from the rule, and its steps", cost.like, "Like ILike"),
    ("knows the pattern from the rule, and its steps", cost.matched, "RLike"),
    ("knows the pattern from the rule, and its steps", cost.extracted, "RegExpExtract"),
    ("knows the pattern from the rule, and its steps", cost.rewritten, "RegExpReplace"),
    ("knows the pattern from the rule, and its steps", cost.split, "StringSplit"),
    ("is what is put into it", cost.array, "CreateArray CreateNamedStruct"),
    ("is an element, or null where there is none", cost.element,
     "GetArrayItem Get GetStructField GetArrayStructFields GetMapValue"),
    ("counts elements", cost.value, "Size ArraySize"),
    ("compares elements with each other", cost.among,
     "ArrayContains ArraysOverlap ArrayPosition ArrayMax ArrayMin"),
    ("is made of elements that are there", cost.some_elements,
     "ArrayDistinct ArrayIntersect ArrayExcept ArrayUnion ArrayRemove ArrayCompact SortArray"),
    ("is its elements together", cost.glued, "ArrayJoin"),
    ("looks at each element", cost.over, "ArrayExists ArrayForAll ArrayTransform"),
    ("looks at each element", cost.kept, "ArrayFilter"),
)  # fmt: skip

#: Class: bounds of what it makes and costs.
TAKEN: dict[str, Shape] = {name: shape for _, shape, names in LISTED for name in names.split()}
#: Taken below TRY alone, which gives null for what they throw.
TRIED = frozenset(
    ("TimestampAddInterval", "DateAddInterval", "TimestampAddYMInterval", "SubtractTimestamps", "SubtractDates")
)

#: Data types of what stands in a rule as it is.
LITERALS = (
    *("void", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz", "interval"),
)
#: Data types that a text may be converted to; an interval that is none ends the query.
CASTS = tuple(name for name in LITERALS if name != "interval")

#: Classes before analysis that are names and no functions.
NAMES = {
    *("UnresolvedFunction", "UnresolvedAttribute", "UnresolvedExtractValue", "LambdaFunction"),
    *("UnresolvedNamedLambdaVariable", "Literal"),
}
#: Builders of functions, by which Spark's registry knows them, and the classes that they build.
BUILDERS = {
    "CeilExpressionBuilder": "Ceil",
    "ContainsExpressionBuilder": "Contains",
    "DatePartExpressionBuilder": "Extract",
    "EndsWithExpressionBuilder": "EndsWith",
    "FloorExpressionBuilder": "Floor",
    "HourExpressionBuilder": "Hour",
    "LPadExpressionBuilder": "StringLPad",
    "MinuteExpressionBuilder": "Minute",
    "RPadExpressionBuilder": "StringRPad",
    "SecondExpressionBuilder": "Second",
    "StartsWithExpressionBuilder": "StartsWith",
    "StringInstrExpressionBuilder": "StringInstr",
}

_AGGREGATE = "an aggregate needs many records"
_WINDOW = "a window function needs many records"
_SUBQUERY = "a subquery reads more than the record"
_PYTHON = "a Python function would run once a record"
_CLOCK = "it depends on the time of evaluation; use the record's own time, such as created_at"
_CHANCE = "it is not deterministic, so the same record could be decided in two ways"
_THROWS = "it ends the query where a record has no answer for it"
_UNBOUNDED = "a record can make it fill the memory"
_OUTSIDE = "it reads what is no part of the record"
_OVERFLOW = "the latest times make it end the query; compare unix_micros(...), or use try_add and try_subtract"

#: Function groups of Spark's registry (ExpressionInfo.getGroup) that need more than one payment.
GROUPS = {
    "agg_funcs": _AGGREGATE,
    "window_funcs": _WINDOW,
    "generator_funcs": "it makes several rows of one record",
}
_REFUSED: tuple[tuple[str, str], ...] = (
    (_SUBQUERY, "ScalarSubquery Exists ListQuery InSubquery LateralSubquery FunctionTableSubqueryArgumentExpression"),
    (_WINDOW, "WindowExpression UnresolvedWindowExpression TimeWindow SessionWindow WindowTime"),
    (_PYTHON, "PythonUDF PythonUDAF UserDefinedPythonFunction"),
    ("name the column", "UnresolvedStar"),
    ("a predicate has no name of its own", "UnresolvedAlias"),
    ("it would stop the query on a record", "RaiseError RaiseErrorExpressionBuilder AssertTrue"),
    (_CLOCK, "CurrentDate CurrentTimestamp Now LocalTimestamp CurrentTime CurDateExpressionBuilder"),
    (_CHANCE,
     "Rand Randn Uniform RandStr Uuid Shuffle MonotonicallyIncreasingID SparkPartitionID CallMethodViaReflection "
     "TryReflect"),
    (_OUTSIDE,
     "XmlToStructs SchemaOfXml InputFileName InputFileBlockStart InputFileBlockLength CurrentUser CurrentDatabase "
     "CurrentCatalog CurrentPath SparkVersion CurrentTimeZone FromAvro ToAvro FromProtobuf ToProtobuf"),
    (_THROWS,
     "UrlDecode StringToMap ToNumber ParseJsonExpressionBuilder ElementAt TryElementAt Slice SplitPart CreateMap "
     "FormatString ValidateUTF8 AesDecrypt XPathBoolean XPathDouble XPathFloat XPathInt XPathLong XPathShort "
     "XPathString XPathList MillisToTimestamp SecondsToTimestamp"),
    (_UNBOUNDED, "Sequence ArrayRepeat ArrayAggregate FormatNumber Flatten"),
    (_OVERFLOW, "TimestampAddInterval SubtractTimestamps SubtractDates DateAddInterval TimestampAddYMInterval "
     "AddMonths LastDay MonthsBetween NextDay TimestampAdd TimestampDiff"),
    ("write the function's name alone", "ExpressionWithUnresolvedIdentifier"),
    ("write `field LIKE 'a' OR field LIKE 'b'`", "LikeAny LikeAll NotLikeAny NotLikeAll"),
)  # fmt: skip
REFUSED: dict[str, str] = {name: reason for reason, names in _REFUSED for name in names.split()}
OTHERWISE = "it is not on the list of functions that answer every record (docs/rules.md)"
