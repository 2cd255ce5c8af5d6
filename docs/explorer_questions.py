"""Three questions for each view of the explorer that its picture answers without scrolling, and the part that does.

    QUESTIONS[name] = ((English, Chinese, CSS selector within the page), …)

docs/screens.py prints them; a test looks at 1440 x 900 whether every part is inside the window.
"""

from __future__ import annotations

Question = tuple[str, str, str]

QUESTIONS: dict[str, tuple[Question, Question, Question]] = {
    "start": (
        ("How long were the texts of training?", "训练时的文本有多长？", ".tale .trained"),
        ("Which model writes nonsense beyond it?", "再长下去，哪个模型写出乱码？", ".voices"),
        ("How does the loss change as the text grows?", "文本变长时，损失怎样变化？", ".curve"),
    ),
    "stretch": (
        ("How much longer than in training is the text?", "文本比训练时长多少？", ".tape svg"),
        ("Which model still writes words?", "哪个模型还写得出词？", ".written"),
        ("From which position on does the loss rise?", "损失从哪个位置开始上升？", ".lost .chart"),
    ),
    "order": (
        ("Which position does each word have now?", "每个词现在在哪个位置？", ".words.moving"),
        ("Which words were moved?", "哪些词被移动了？", ".strings"),
        ("Does the attention between two words change?", "两个词之间的注意力变不变？", ".weights"),
    ),
    "binary": (
        ("Which bits flip at this position?", "在这个位置，哪些位翻转？", ".columns tr[aria-current]"),
        ("How far has each clock turned?", "每只时钟转了多少？", ".faces"),
        ("Where does the fastest clock alone repeat?", "只看最快的时钟，在哪里重复？", ".closer .line.dashed"),
    ),
    "table": (
        ("Which columns change fast, which slowly?", "哪些列变得快，哪些变得慢？", ".map canvas"),
        ("How does the table grow, row by row?", "表怎样一行一行地长出来？", ".player"),
        ("Which number does a colour stand for?", "一种颜色代表哪个数？", ".map .colour-key"),
    ),
    "wavelengths": (
        ("How long is the wavelength of each pair?", "每个通道对的波长是多少？", ".ladder svg"),
        ("Which pairs do not complete a turn?", "哪些通道对转不满一圈？", ".dots.unfinished"),
        ("How far does the chosen pair turn?", "所选的通道对转多少？", ".turn"),
    ),
    "shift": (
        ("By which angle is a pair rotated?", "一个通道对转过多少角度？", ".circle"),
        ("Where does the matrix differ from zero?", "矩阵在哪里不为零？", ".map canvas"),
        ("How large is the remaining error?", "剩下的误差多大？", "[data-role=error]"),
    ),
    "similarity": (
        ("Does a word before score as much as one after?", "前面的词和后面的词分数一样吗？", ".line-of-words"),
        ("How large is it at this distance?", "在这个距离处是多少？", ".charted .legend"),
        ("Does it fall at every step?", "它是不是步步下降？", ".predict"),
    ),
    "paths": (
        ("Is the path smooth or tangled?", "路径是光滑的还是杂乱的？", ".plane .track"),
        ("How alike are the two chosen positions?", "选中的两个位置有多相似？", "[data-role=chord]"),
        (
            "Does a row score higher with near positions than with far ones?",
            "一行与近处位置的分数比与远处的高吗？",
            ".path .chart svg",
        ),
    ),
    "rotary_pair": (
        ("How far are query and key rotated?", "查询和键各转了多少？", ".plane svg"),
        ("How much does each pair add to the score?", "每个通道对给分数贡献多少？", ".bars"),
        ("Which word has the highest score?", "哪个词的分数最高？", ".words"),
    ),
    "terms": (
        ("Which four maps add up to the score?", "哪四张图加起来是分数？", ".term canvas"),
        ("Which term decides the marked cell?", "哪一项决定标出的格子？", ".steps"),
        ("What does each step change?", "每一步改变什么？", ".melting"),
    ),
    "taylor": (
        ("How fast does what is left out fall?", "舍去的部分下降得多快？", ".chart svg"),
        ("Which order is the largest?", "哪一阶最大？", ".orders"),
        ("Is anything left of the scores?", "分数还剩下什么吗？", "[data-role=score-left]"),
    ),
    "bias": (
        ("What is added for each query and key?", "每个查询和键加上多少？", ".map canvas"),
        ("Which head sees far, which near?", "哪个头看得远，哪个看得近？", ".charted .line"),
        ("From which distance on is less than 1% left?", "从哪个距离起只剩不到 1%？", ".charted text.mark"),
    ),
    "attention": (
        ("At which step does position enter?", "位置在哪一步进入？", ".pipeline button[data-site]"),
        ("What is added to the words?", "词上加了什么？", ".entering table"),
        ("What does the next step receive?", "下一步得到什么？", ".frame table[role=grid]"),
    ),
    "heads": (
        ("Where does each word look?", "每个词看向哪里？", ".attending svg"),
        ("Which heads look at the right word?", "哪些头看向对的词？", ".maps [role=radio]"),
        ("How many held-out sentences are right?", "留出的句子答对了多少？", "[data-role^=right]"),
    ),
    "compare": (
        ("Which encodings see only the distance?", "哪些编码只看距离？", ".panel .diagonal"),
        ("What does each add at the marked cell?", "在标出的格子上，各加多少？", ".panel output"),
        ("Which head is shown?", "显示的是哪个头？", ".heads [aria-checked=true]"),
    ),
    "measured": (
        ("Which encodings predict long text as well as short?", "哪些编码读长文本和读短文本一样好？", ".points .arm"),
        ("How far apart are the seeds?", "随机种子之间相差多少？", ".points .range"),
        ("Which point belongs to which length?", "哪个点是哪个长度？", ".legend"),
    ),
    "extrapolation": (
        ("Which pairs get new angles beyond training?", "超出训练长度后，哪些通道对出现新角度？", ".strips .new"),
        ("How far does a pair turn, before and beyond?", "训练长度内外，一个通道对各转多少？", ".ring svg"),
        ("Which setting leaves no new angle?", "哪种设置没有新角度？", "[data-role=new-pairs]"),
    ),
    "layouts": (
        ("Which channels form a pair in each layout?", "两种布局里各是哪些通道成对？", ".channels svg"),
        ("Which channel does one become in the other layout?", "换一种布局，一个通道变成哪一个？", ".move.chosen"),
        ("Are the scores right?", "分数对不对？", ".verdict"),
    ),
    "precision": (
        ("Which ways keep their error at every position?", "哪些算法在任何位置误差都不变？", ".chart svg"),
        ("How large is each error at the cursor?", "光标处各种误差多大？", ".charted .legend"),
        ("Which neighbouring positions become one?", "哪些相邻的位置变成同一个？", "table.strip"),
    ),
    "what_breaks": (
        ("Which clock hands does the bug move?", "这个错误动了哪些指针？", ".hands svg"),
        ("Where does the attention go?", "注意力去了哪里？", ".maps canvas"),
        ("What goes wrong, and what catches it?", "错在哪里，由谁发现？", ".about-bug dd"),
    ),
}
