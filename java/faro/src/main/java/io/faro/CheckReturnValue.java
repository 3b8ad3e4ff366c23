package io.faro;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The result says whether anything was done: a caller that drops it may lose rows. Static analysis
 * recognises the annotation by its simple name (Error Prone: {@code CheckReturnValue}, SpotBugs:
 * {@code RV_RETURN_VALUE_IGNORED}) and warns.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface CheckReturnValue {}
