/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Does a JSON document fit a schema? The words of JSON Schema 2020-12 that our own schemas use:
 * type, properties, required, additionalProperties false, items, prefixItems, minItems, maxItems,
 * minimum, maximum, enum, const, anyOf, $ref into $defs. A word that is not known is a failure, so
 * that no rule is passed over. Included by unit tests, after cmocka.h.
 */
#ifndef TEST_JSON_SCHEMA_H
#define TEST_JSON_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct schema_check {
	const json_t *root;
	char error[400]; /* "" while it fits */
};

static bool schema_fits(struct schema_check *c, const json_t *schema, const json_t *v,
			const char *path);

static inline bool schema_no(struct schema_check *c, const char *path, const char *what,
			     const char *more)
{
	snprintf(c->error, sizeof(c->error), "%s: %s %s", path, what, more);
	return false;
}

static inline bool schema_is(const json_t *v, const char *type)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return strcmp(type, "object") == 0;
	case JSON_ARRAY: return strcmp(type, "array") == 0;
	case JSON_STRING: return strcmp(type, "string") == 0;
	case JSON_INTEGER: return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
	case JSON_REAL: return strcmp(type, "number") == 0;
	case JSON_TRUE:
	case JSON_FALSE: return strcmp(type, "boolean") == 0;
	case JSON_NULL: return strcmp(type, "null") == 0;
	}
	return false;
}

static inline bool schema_type(const json_t *type, const json_t *v)
{
	json_t *one;
	size_t i;

	if (json_is_string(type))
		return schema_is(v, json_string_value(type));
	json_array_foreach(type, i, one) if (schema_is(v, json_string_value(one))) return true;
	return false;
}

static inline bool schema_any(struct schema_check *c, const json_t *list, const json_t *v,
			      const char *path, bool by_value)
{
	char first[sizeof(c->error)] = "";
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (by_value ? json_equal(one, v) : schema_fits(c, one, v, path)) {
			c->error[0] = '\0';
			return true;
		}
		if (!i)
			snprintf(first, sizeof(first), "%s", c->error);
	}
	if (by_value)
		return schema_no(c, path, "not one of the", "enum");
	snprintf(c->error, sizeof(c->error), "%s", first);
	return false;
}

static inline bool schema_object(struct schema_check *c, const json_t *schema, const json_t *v,
				 const char *path)
{
	const json_t *props = json_object_get(schema, "properties");
	char at[256];
	const char *key;
	json_t *one;
	size_t i;

	json_array_foreach(
		json_object_get(schema, "required"), i,
		one) if (!json_object_get(v,
					  json_string_value(
						  one))) return schema_no(c, path, "lacks",
									  json_string_value(one));
	json_object_foreach((json_t *)v, key, one)
	{
		const json_t *sub = json_object_get(props, key);

		snprintf(at, sizeof(at), "%s.%s", path, key);
		if (sub && !schema_fits(c, sub, one, at))
			return false;
		if (!sub && json_is_false(json_object_get(schema, "additionalProperties")))
			return schema_no(c, path, "has the unknown", key);
	}
	return true;
}

static inline bool schema_array(struct schema_check *c, const json_t *schema, const json_t *v,
				const char *path)
{
	const json_t *least = json_object_get(schema, "minItems");
	const json_t *most = json_object_get(schema, "maxItems");
	const json_t *items = json_object_get(schema, "items");
	const json_t *prefix = json_object_get(schema, "prefixItems");
	json_int_t n = (json_int_t)json_array_size(v);
	char at[256];
	json_t *one;
	size_t i;

	if ((least && n < json_integer_value(least)) || (most && n > json_integer_value(most)))
		return schema_no(c, path, "has a wrong number of", "items");
	json_array_foreach(v, i, one)
	{
		const json_t *sub = json_array_get(prefix, i) ? json_array_get(prefix, i) : items;

		snprintf(at, sizeof(at), "%s[%zu]", path, i);
		if (sub && !schema_fits(c, sub, one, at))
			return false;
	}
	return true;
}

static inline bool schema_known(struct schema_check *c, const json_t *schema, const char *path)
{
	static const char *const words[] = {"$schema",	  "$defs",	 "$ref",
					    "title",	  "description", "type",
					    "enum",	  "const",	 "anyOf",
					    "properties", "items",	 "required",
					    "minItems",	  "maxItems",	 "additionalProperties",
					    "minimum",	  "maximum",	 "prefixItems"};
	const char *key;
	json_t *one;

	json_object_foreach((json_t *)schema, key, one)
	{
		bool known = false;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			known |= strcmp(words[i], key) == 0;
		if (!known)
			return schema_no(c, path, "the schema has a word not checked here:", key);
	}
	return true;
}

static bool schema_fits(struct schema_check *c, const json_t *schema, const json_t *v,
			const char *path)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	const json_t *j;

	if (!schema_known(c, schema, path))
		return false;
	if (ref) {
		j = strncmp(ref, "#/$defs/", 8) == 0
			    ? json_object_get(json_object_get(c->root, "$defs"), ref + 8)
			    : NULL;
		return j ? schema_fits(c, j, v, path) : schema_no(c, path, "no such", ref);
	}
	if ((j = json_object_get(schema, "type")) && !schema_type(j, v))
		return schema_no(c, path, "is of a wrong", "type");
	if ((j = json_object_get(schema, "const")) && !json_equal(j, v))
		return schema_no(c, path, "is not the", "constant");
	if ((j = json_object_get(schema, "enum")) && !schema_any(c, j, v, path, true))
		return false;
	if ((j = json_object_get(schema, "anyOf")) && !schema_any(c, j, v, path, false))
		return false;
	if ((j = json_object_get(schema, "minimum")) && json_is_number(v) &&
	    json_number_value(v) < json_number_value(j))
		return schema_no(c, path, "is below the", "minimum");
	if ((j = json_object_get(schema, "maximum")) && json_is_number(v) &&
	    json_number_value(v) > json_number_value(j))
		return schema_no(c, path, "is above the", "maximum");
	if (json_is_object(v))
		return schema_object(c, schema, v, path);
	return !json_is_array(v) || schema_array(c, schema, v, path);
}

#endif
