"""Lists the references of style sheets, read by tinycss2.

Reads the paths of style sheets from standard input, one a line. Writes one line of JSON for each: all
references in order, and those in what is valid by the standard.
"""

import json
import re
import sys

import tinycss2

GROUPS = {"media", "supports", "layer", "container", "document", "-moz-document", "scope"}


class References(list):
    def push(self, value):
        value = value.strip("\t\n\x0c\r ")
        value = re.sub("[\t\n\r]", "", value)
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*):", value)
        is_foreign = scheme and scheme[1].lower() not in ("http", "https")
        if value and not value.startswith("#") and not is_foreign:
            self.append(value)


def is_function(token, *names):
    return token.type == "function" and token.lower_name in names


def strings(token, found):
    for argument in token.arguments:
        if argument.type == "string":
            found.push(argument.value)


def values(tokens, found):
    """Notes the references among the values of a declaration."""
    for token in tokens:
        if token.type == "url":
            found.push(token.value)
        elif token.type == "function":
            if token.lower_name in ("url", "src", "image-set", "-webkit-image-set"):
                strings(token, found)
            values(token.arguments, found)
        elif token.type in ("() block", "[] block"):
            values(token.content, found)
        elif token.type == "{} block":
            block(token.content, found)


def import_of(prelude, found):
    for token in prelude:
        if token.type in ("whitespace", "comment"):
            continue
        if token.type in ("string", "url"):
            found.push(token.value)
        elif is_function(token, "url", "src"):
            strings(token, found)
        return


def block(tokens, found):
    """Notes the references in a block, among them those in invalid declarations."""
    begins, in_rule = True, False
    for token in tokens:
        if token.type in ("whitespace", "comment"):
            continue
        if in_rule:
            if token.type == "{} block":
                block(token.content, found)
            in_rule = not (token == ";" or token.type == "{} block")
            begins = not in_rule
        elif token.type == "at-keyword" and begins:
            in_rule = True
        else:
            values([token], found)
            begins = token == ";" or token.type == "{} block"


def sheet(rules, found):
    for rule in rules:
        if rule.type == "at-rule" and rule.lower_at_keyword == "import":
            import_of(rule.prelude, found)
        if rule.type in ("at-rule", "qualified-rule") and rule.content is not None:
            block(rule.content, found)


def valid(rules, found):
    """Notes the references in what a browser would not drop as invalid."""
    for rule in rules:
        if rule.type == "declaration":
            values(rule.value, found)
        elif rule.type == "qualified-rule":
            valid(tinycss2.parse_blocks_contents(rule.content), found)
        elif rule.type == "at-rule" and rule.content is not None:
            is_group = rule.lower_at_keyword in GROUPS
            parse = tinycss2.parse_rule_list if is_group else tinycss2.parse_blocks_contents
            valid(parse(rule.content), found)


for line in sys.stdin:
    with open(line.rstrip("\n"), "rb") as file:
        rules, _ = tinycss2.parse_stylesheet_bytes(file.read())
    all_of, valid_of = References(), References()
    sheet(rules, all_of)
    valid(rules, valid_of)
    print(json.dumps([all_of, valid_of]))
