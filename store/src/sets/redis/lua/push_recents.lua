-- Adds posts to their authors' newest. KEYS: the sets. ARGV: members at the most; then for each set how many entries, and their
-- scores and members.
local max = tonumber(ARGV[1])

-- Room is made before the add: one member too many would turn the set into a skiplist, and never back.
local function push(recent, score, member)
  if redis.call('ZSCORE', recent, member) then
    return
  end
  if redis.call('ZCARD', recent) >= max then
    local last = redis.call('ZRANGE', recent, -1, -1)[1]
    if is_below(id_of(member), id_of(last)) then
      return
    end
    redis.call('ZREMRANGEBYRANK', recent, max - 1, -1)
  end
  redis.call('ZADD', recent, score, member)
end

local at = 2
for _, recent in ipairs(KEYS) do
  local behind = at + 1 + 2 * ARGV[at]
  for place = at + 1, behind - 1, 2 do
    push(recent, ARGV[place], ARGV[place + 1])
  end
  at = behind
end
