import json
def growth(program, quick): return None
def page(told): return json.dumps(told, indent=1), []
