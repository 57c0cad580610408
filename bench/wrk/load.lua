-- Sends the requests of a plan, which bench/load.py writes, and counts the responses.
--
-- If every response should have status 200, wrk itself counts the other responses. There is no Lua
-- hook in this case, because it would take processor time from the server. A single response was
-- checked before the load.

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long microseconds; } moment_t;
  int gettimeofday(moment_t *moment, void *zone);
]]

local plan = dofile(os.getenv("LOAD_PLAN"))
local moment = ffi.new("moment_t")
local threads = {}

local function now()
  ffi.C.gettimeofday(moment, nil)
  return tonumber(moment.seconds) + tonumber(moment.microseconds) / 1e6
end

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

-- Distribute the values of the file evenly over the threads.
local function own_values()
  local own, line_number = {}, 0
  if plan.values == "" then
    return own
  end
  for line in io.lines(plan.values) do
    if line_number % plan.threads == number then
      own[#own + 1] = line
    end
    line_number = line_number + 1
  end
  return own
end

local values, first, last, taken = {}, 1, 0, 0
right, wrong, began, ended = 0, 0, 0, 0
statuses = {}

function init()
  values = own_values()
  last = #values
end

local choose = {}

function choose.same()
  return ""
end

function choose.count()
  taken = taken + 1
  return string.format("%05d%02d%010d", plan.run, number, taken)
end

function choose.rotate()
  taken = taken % last + 1
  return values[taken]
end

-- Use each value once. In the mode "chain", a response may append a new value to the queue.
function choose.once()
  if first > last then
    return values[last] or "" -- for a further request while the thread stops
  end
  first = first + 1
  return values[first - 1]
end

choose.chain = choose.once
local value_of = choose[plan.mode]

function request()
  if began == 0 then
    began = now()
  end
  return table.concat(plan.parts, value_of())
end

-- wrk calls this after each response to get the pause of the connection.
if plan.pause > 0 then
  function delay()
    return plan.pause
  end
end

-- The body must contain one of the texts for its status, if there are any.
local function is_right(status, body)
  local texts = plan.expected[status] or {}
  for _, text in ipairs(texts) do
    if string.find(body, text, 1, true) then
      return true
    end
  end
  return plan.expected[status] ~= nil and #texts == 0
end

local function follow(body)
  local successor = string.match(body, plan.successor)
  if successor ~= nil then
    last = last + 1
    values[last] = successor
    values[first - 1] = nil
  end
end

if plan.looks then
  function response(status, _, body)
    ended = now()
    statuses[tostring(status)] = (statuses[tostring(status)] or 0) + 1
    if is_right(status, body) then
      right = right + 1
      if plan.mode == "chain" then
        follow(body)
      end
    else
      wrong = wrong + 1
    end
    if (plan.mode == "once" or plan.mode == "chain") and first > last then
      wrk.thread:stop()
    end
  end
end

-- A thread that has received enough responses waits for the end of the run.
if plan.answers > 0 then
  local look, answered = response, 0
  function response(status, headers, body)
    if look then
      look(status, headers, body)
    end
    answered = answered + 1
    if answered >= plan.answers then
      wrk.thread:stop()
    end
  end
end

-- The values may be used up before the end of the run, so the duration is measured from the first
-- request to the last response.
local function of_the_hooks(summary)
  local from, to, good, bad, seen = nil, 0, 0, 0, {}
  for _, thread in ipairs(threads) do
    local start, stop = thread:get("began"), thread:get("ended")
    from = (from == nil or start < from) and start or from
    to = math.max(to, stop)
    good, bad = good + thread:get("right"), bad + thread:get("wrong")
    for status, times in pairs(thread:get("statuses")) do
      seen[status] = (seen[status] or 0) + times
    end
  end
  return good, bad, math.max(to - from, 1e-6), seen
end

local function of_wrk(summary)
  local bad = summary.errors.status
  local good = summary.requests - bad
  return good, bad, summary.duration / 1e6, { ["200"] = good, ["400 and above"] = bad }
end

local function as_json(numbers)
  local pairs_of = {}
  for name, count in pairs(numbers) do
    pairs_of[#pairs_of + 1] = string.format('"%s": %d', name, count)
  end
  return "{" .. table.concat(pairs_of, ", ") .. "}"
end

function done(summary, latency)
  local good, bad, seconds, seen = (plan.looks and of_the_hooks or of_wrk)(summary)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format(
    'LOADED {"right": %d, "wrong": %d, "broken": %d, "seconds": %.6f, '
      .. '"p50": %.3f, "p95": %.3f, "p99": %.3f, "statuses": %s}\n',
    good, bad, broken, seconds, latency:percentile(50) / 1000, latency:percentile(95) / 1000,
    latency:percentile(99) / 1000, as_json(seen)
  ))
end
