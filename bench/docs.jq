# results.json as the text of docs/performance.md: bench/docs.sh says $part, machine or ratios,
# and gives $before, the column "before" by row.
def digits:
	if . >= 100 then round elif . >= 10 then (. * 10 | round) / 10
	elif . >= 0.1 then (. * 100 | round) / 100 else (. * 10000 | round) / 10000 end;

def machine:
	"\(.cpu), \(.cores) cores" +
	(if .hypervisor != "" then ", \(.hypervisor)" else "" end) +
	", \(.kernel); two atomic additions \(.two_adds_ns | digits) ns, raw line " +
	"\(.raw_line_ns | digits) ns one way.";

def judged:
	"| \(.what) | \(.base_name) | \($before[.what] // "") | \(.ratio.median | digits) x | " +
	(if .target_kind == "ratio at least" then "at least " else "" end) +
	"\(.target) x | \(.verdict) |";

def informs:
	"| \(.what) | \(.value.median | digits) ns | \(.base_name) | " +
	"\(.base.median | digits) ns | \(.ratio.median | digits) x |";

if $part == "machine" then .machine | machine
else
	"| what | against | before | now | target | |",
	"|---|---|---:|---:|---:|---|",
	(.rows[] | select(.target_kind // "" | startswith("ratio")) | judged),
	"",
	"| for information | median | against | median | ratio |",
	"|---|---:|---|---:|---:|",
	(.rows[] | select(.base_name and (.target_kind | not)) | informs)
end
