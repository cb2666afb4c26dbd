#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dashboard and alert rules name only metrics and labels that docs/metrics.md lists, and lead to
pages that exist."""
import json
import pathlib
import re
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/metrics.md").read_text()
METRICS = dict(re.findall(r"^\| `(ztcp_\w+)` \| (counter|gauge|histogram) \|", PAGE, re.M))
LABELS = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE.split("## Labels")[1].split("ztcp does not")[0], re.M))
DASHBOARD = json.loads((ROOT / "packaging/grafana/ztcp.json").read_text())
RULES = yaml.safe_load((ROOT / "packaging/prometheus/ztcp.rules.yml").read_text())


def names(expression):
    found = re.findall(r"\bztcp_\w+", expression)
    return [re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name for name in found]


def rules():
    return [rule for group in RULES["groups"] for rule in group["rules"]]


class Dashboard(unittest.TestCase):
    def expressions(self):
        return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]

    def test_panels_show_existing_metrics(self):
        self.assertGreater(len(self.expressions()), 15)
        for expression in self.expressions():
            self.assertTrue(names(expression), expression)
            for name in names(expression):
                self.assertIn(name, METRICS, expression)

    def test_variables_come_from_existing_metrics(self):
        for variable in DASHBOARD["templating"]["list"]:
            if variable["type"] == "query":
                for name in names(variable["query"]["query"]):
                    self.assertIn(name, METRICS)

    def test_labels_exist(self):
        for expression in self.expressions():
            for label in re.findall(r"(\w+)=~", expression):
                self.assertIn(label, LABELS, expression)
            for group in re.findall(r"\bby \(([^)]*)\)", expression):
                for label in group.split(","):
                    self.assertIn(label.strip(), LABELS | {"le"}, expression)

    def test_counters_are_shown_as_rates(self):
        for expression in self.expressions():
            for name in names(expression):
                if METRICS[name] == "counter":
                    self.assertRegex(expression, rf"(rate|increase)\({name}\b")

    def test_panels_have_their_own_place(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
        self.assertEqual(len(places), len(set(places)))


class Alerts(unittest.TestCase):
    def test_rules_use_existing_metrics(self):
        for rule in rules():
            self.assertTrue(names(rule["expr"]), rule["alert"])
            for name in names(rule["expr"]):
                self.assertIn(name, METRICS, rule["alert"])

    def test_runbooks_exist(self):
        for rule in rules():
            page = rule["annotations"]["runbook"].split(":")[0]
            self.assertTrue((ROOT / page).exists(), f"{rule['alert']}: {page}")

    def test_summaries_name_the_host(self):
        for rule in rules():
            self.assertIn("$labels.node", rule["annotations"]["summary"], rule["alert"])


if __name__ == "__main__":
    unittest.main()
